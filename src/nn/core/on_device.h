/* SPDX-License-Identifier: Apache-2.0 */
/*
 * on_device.h: a net whose steps run on a device. Its front stays here: checks, losses, sums over
 * groups; what these need is fetched from the device, and what they find is sent back.
 */
#ifndef NEAP_NN_CORE_ON_DEVICE_H
#define NEAP_NN_CORE_ON_DEVICE_H

#include "nn/core/step_backend.h"

#include <neap/net.h>
#include <neap/tier.h>

/*
 * From now on the steps of the net run on a device. `steps` is borrowed and `self` passed to its
 * functions until the net is freed, or until this is called with NULL, which ends what a batch that
 * is begun may be used for. NEAP_EUSAGE: a batch is begun already; or the code of a device that the
 * weights could not be fetched from.
 */
int neap__on_device(struct neap_net *net, const struct neap__step_backend *steps, void *self);

struct neap_device_use; /* neap/net.h */

/* What opens devices; functions return 0 or a negative code. Devices of one name are one. */
struct neap__device_driver {
	int (*count)(int *devices);
	int (*open)(void **device, const char *name);
	void (*close)(void *device);
	/* Makes a net run on the device, and on this processor again. */
	int (*attach)(void **attached, void *device, struct neap_net *net);
	void (*detach)(void *attached);
	/* As neap_tiers_open, for records in the device's memory. */
	int (*tiers)(void *device, struct neap_tier **tiers, int *count, const char *list,
		const struct neap_file_options *options);
	/* Fills all but `planned`; `free` is what is free now. Returns what is mapped now. */
	int (*use)(void *device, struct neap_device_use *use, uint64_t *mapped);
	/* Measures once: bytes per second of copies from and to pinned memory, and within the
	   device, and seconds per launch. */
	int (*speed)(void *device, double rate[3], double *launch);
};

/* Set once by a program that has devices, before its first net. */
extern const struct neap__device_driver *neap__device_driver;

enum { NEAP__DEVICE_NAME = 32 };
/*
 * The device of the rank with so many ranks before it on this host, for options that name
 * `device`: ranks take turns with all devices if it has no number, as "cuda". Returns `device`,
 * or `room` with another name. If the driver fails, opening the device returns the error.
 */
const char *neap__on_device_of_rank(
	char room[NEAP__DEVICE_NAME], const char *device, int ranks_before);
/* Whether a name is that of a device: NULL and "cpu" are not. */
int neap__is_device(const char *device);
/*
 * Opens the device of the options, if there is one, and attaches the net. Returns 0 or a negative
 * code: NEAP_EUSAGE if there is none and the options choose a math of devices.
 */
int neap__on_device_open(struct neap_net *net);
/* Opens tiers for the memory that the steps of the net take states from; net may be NULL. */
int neap__on_device_tiers(const struct neap_net *net, struct neap_tier **tiers, int *count,
	const char *list, const struct neap_file_options *options);
/*
 * Fills *use as neap__device_driver.use does, with zeros for a net without a device; *mapped (may
 * be NULL): the bytes that this process has on the device now.
 */
int neap__on_device_use(const struct neap_net *net, struct neap_device_use *use, uint64_t *mapped);
/* Refuses what has to see states of a net that runs on a device: NEAP_EUSAGE. */
int neap__on_device_refuse(const struct neap_net *net, const char *what);

/*
 * From now on weights, gradients and `moments` numbers of each parameter, which are 0, stay on the
 * device, and updates are made there; gradients of the host are 0. Batches have no peers and no
 * journal then. Nothing happens on this processor.
 */
int neap__on_device_keep(struct neap_net *net, int moments);
int neap__on_device_keeps(const struct neap_net *net);
/*
 * Before the host's weights are read or changed: copies them from a device that keeps them, and
 * lets the next batch copy them back.
 */
int neap__on_device_share(struct neap_net *net);
/* The same as rows of struct neap__step_backend, of a net that keeps its parameters. */
int neap__on_device_squares(struct neap_net *net, const double **square);
int neap__on_device_update(struct neap_net *net, struct neap__update update, int *finite);
int neap__on_device_moment(struct neap_net *net, int tensor, int moment, double *at, int send);

/* At the end of neap_net_begin: makes room for a state and an adjoint, and begins on the device. */
int neap__on_device_begin(struct neap_net *net);
/*
 * Sets *seen to the bytes of a state that the net has advanced to: of a device, copied to memory of
 * the net, where they stay until the next call of the net.
 */
int neap__on_device_state(struct neap_net *net, void **seen, void *state);
/* Writes the bytes that it set back to the state. */
int neap__on_device_state_back(struct neap_net *net, void *state);
/* The turn: `turn` computes it on copies of the state and the adjoint. */
int neap__on_device_turn(struct neap_net *net, const void *state, void *adjoint, double *loss,
	int (*turn)(struct neap_net *net, const void *state, void *adjoint, double *loss));
/*
 * From now on a device asks for the batch that will follow when it has queued the last steps of a
 * batch, and copies its inputs while it computes. `ask` returns a batch that stays as it is until
 * it was begun, or NULL. ask NULL: never. Batches copied before are forgotten.
 */
void neap__net_ahead(struct neap_net *net, const struct neap_batch *(*ask)(void *user), void *user);
/* Before neap_net_begin of a batch that `ask` may have returned, or of a copy of its struct. */
void neap__net_ahead_begins(struct neap_net *net, const struct neap_batch *batch);
/* Waits for steps that are queued on a device. net may be NULL. */
int neap__net_wait(const struct neap_net *net);
/*
 * The end of a batch: adds up the gradients of all groups on a device that keeps them, and fetches
 * the sums of the groups otherwise, before the net adds them up.
 */
int neap__on_device_end(struct neap_net *net);
void neap__on_device_free(struct neap_net *net);

/* The memory that the steps of a net take states from; NULL, also without a net: of this process.
 */
const struct neap_memory_ops *neap__net_memory(const struct neap_net *net);

#endif

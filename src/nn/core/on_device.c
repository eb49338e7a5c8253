/* SPDX-License-Identifier: Apache-2.0 */
/* on_device.c: what a net fetches from a device and sends to it (on_device.h). */
#include "nn/core/on_device.h"
#include "nn/core/net_memory.h"
#include "nn/core/net_state.h"
#include "base/fail.h"
#include "base/print.h"

#include <neap/net.h>
#include <errno.h>
#include <string.h>

int neap__on_device(struct neap_net *net, const struct neap__step_backend *steps, void *self)
{
	if (steps && net->batch)
		return neap__fail(
			NEAP_EUSAGE, "a batch is begun: choose the device of a net before it");
	int rc = neap__on_device_share(net);
	net->parameters.kept = net->parameters.is_there = 0;
	net->backend = steps;
	net->on_backend = self;
	return rc;
}

const struct neap__device_driver *neap__device_driver;
static const char *const maths[] = {NEAP_MATH_TABLE(NEAP_CHOICE_NAME)};

const char *neap__on_device_of_rank(
	char room[NEAP__DEVICE_NAME], const char *device, int ranks_before)
{
	const char *clusters = "cuda:clusters=";
	int devices;

	if (!device ||
		(strcmp(device, "cuda") != 0 && strncmp(device, clusters, strlen(clusters)) != 0))
		return device;
	if (ranks_before == 0 || !neap__device_driver || neap__device_driver->count(&devices) < 0 ||
		devices < 1)
		return device;
	neap__print(room, NEAP__DEVICE_NAME, "cuda:%d%.18s", ranks_before % devices,
		device + strlen("cuda"));
	return room;
}

int neap__is_device(const char *device)
{
	return device && strcmp(device, "cpu") != 0;
}

int neap__on_device_open(struct neap_net *net)
{
	if (!neap__is_device(net->options.device))
		return net->options.math == NEAP_MATH_EXACT
			       ? 0
			       : neap__fail(NEAP_EUSAGE,
					 "--math %s needs a GPU, since the processor computes "
					 "all products exactly; add --device cuda, or use --math "
					 "exact",
					 maths[net->options.math]);
	if (!neap__device_driver)
		return neap__fail(NEAP_EUSAGE, "device '%.40s': this program has no devices",
			net->options.device);
	NEAP_TRY(neap__device_driver->open(&net->device, net->options.device));
	return neap__device_driver->attach(&net->attached, net->device, net);
}

int neap__on_device_tiers(const struct neap_net *net, struct neap_tier **tiers, int *count,
	const char *list, const struct neap_file_options *options)
{
	return net && net->device
		       ? neap__device_driver->tiers(net->device, tiers, count, list, options)
		       : neap_tiers_open(tiers, count, list, options);
}

int neap__on_device_use(const struct neap_net *net, struct neap_device_use *use, uint64_t *mapped)
{
	uint64_t unused;

	*use = (struct neap_device_use){0};
	mapped = mapped ? mapped : &unused;
	*mapped = 0;
	return net->device ? neap__device_driver->use(net->device, use, mapped) : 0;
}

int neap__on_device_refuse(const struct neap_net *net, const char *what)
{
	return net->backend ? neap__fail(NEAP_EUSAGE,
				      "%s is not implemented on devices; leave --device out", what)
			    : 0;
}

static int make_turn_room(struct neap_net *net)
{
	size_t bytes = net->state_bytes + net->adjoint_bytes;

	if (bytes <= net->turn_room_bytes)
		return 0;
	neap__net_put(net, net->turn_room);
	net->turn_room_bytes = 0;
	net->turn_room = neap__net_get(net, bytes, 1);
	if (!net->turn_room)
		return neap__fail_errno(ENOMEM, "a copy of the state of %zu bytes", bytes);
	net->turn_room_bytes = bytes;
	return 0;
}

/* A rank without samples of a batch has nothing on its device. */
static int has_samples(const struct neap_net *net)
{
	return net->backend && net->batch->size > 0;
}

int neap__on_device_begin(struct neap_net *net)
{
	if (!has_samples(net))
		return 0;
	net->fixed_tape = 0;
	NEAP_TRY(make_turn_room(net));
	if (!net->parameters.is_there)
		NEAP_TRY(net->backend->send_weights(net->on_backend, net));
	net->parameters.is_there = net->parameters.kept;
	int rc = net->backend->begin(net->on_backend, net, &net->tape_max, &net->log_max);
	net->ahead.copied = NULL;
	net->ahead.is_begun = 0;
	return rc;
}

int neap__on_device_state(struct neap_net *net, void **seen, void *state)
{
	*seen = state;
	if (!net->backend)
		return 0;
	*seen = net->turn_room;
	const struct neap_memory_ops *memory = net->backend->memory;
	return memory->read(memory->user, net->turn_room, state, net->state_bytes);
}

int neap__on_device_state_back(struct neap_net *net, void *state)
{
	if (!net->backend)
		return 0;
	const struct neap_memory_ops *memory = net->backend->memory;
	return memory->write(memory->user, state, net->turn_room, net->state_bytes);
}

int neap__on_device_turn(struct neap_net *net, const void *state, void *adjoint, double *loss,
	int (*turn)(struct neap_net *net, const void *state, void *adjoint, double *loss))
{
	const struct neap__step_backend *backend = net->backend;
	char *copy = net->turn_room, *back = copy + net->state_bytes;

	if (!has_samples(net))
		return turn(net, state, adjoint, loss);
	if (state)
		NEAP_TRY(backend->fetch_readout(net->on_backend, net, state, copy));
	NEAP_TRY(backend->fetch_counts(net->on_backend, net));
	NEAP_TRY(turn(net, state ? copy : NULL, adjoint ? back : NULL, loss));
	if (!adjoint)
		return 0;
	NEAP_TRY(backend->send_adjoint(net->on_backend, net, adjoint, back));
	return backend->send_penalties(net->on_backend, net);
}

void neap__net_ahead(struct neap_net *net, const struct neap_batch *(*ask)(void *user), void *user)
{
	net->ahead.ask = ask;
	net->ahead.user = user;
	net->ahead.copied = NULL;
	net->ahead.is_begun = 0;
}

void neap__net_ahead_begins(struct neap_net *net, const struct neap_batch *batch)
{
	net->ahead.is_begun = batch == net->ahead.copied;
}

int neap__net_wait(const struct neap_net *net)
{
	return net && net->backend ? net->backend->fence(net->on_backend) : 0;
}

int neap__on_device_end(struct neap_net *net)
{
	if (!has_samples(net) || !neap__has_gradients(net))
		return 0;
	return net->parameters.kept ? net->backend->add_groups(net->on_backend, net)
				    : net->backend->fetch_sums(net->on_backend, net);
}

int neap__on_device_keep(struct neap_net *net, int moments)
{
	if (!net->backend)
		return 0;
	NEAP_TRY(net->backend->keep(net->on_backend, net, moments));
	net->parameters.kept = net->parameters.is_here = net->parameters.is_there = 1;
	net->parameters.factor = 1;
	return 0;
}

int neap__on_device_keeps(const struct neap_net *net)
{
	return net->parameters.kept;
}

int neap__on_device_share(struct neap_net *net)
{
	if (!net->parameters.kept)
		return 0;
	if (!net->parameters.is_here) {
		NEAP_TRY(net->backend->fetch_weights(net->on_backend, net));
		for (int l = 0; l < net->nlayers; l++) /* an update may have left their range */
			net->ops->delays(net, &net->layers[l]);
	}
	net->parameters.is_here = 1;
	net->parameters.is_there = 0;
	return 0;
}

int neap__on_device_squares(struct neap_net *net, const double **square)
{
	return net->backend->fetch_squares(net->on_backend, net, square);
}

int neap__on_device_update(struct neap_net *net, struct neap__update update, int *finite)
{
	update.factor = net->parameters.factor;
	net->parameters.factor = 1;
	net->parameters.is_here = 0;
	return net->backend->update(net->on_backend, net, &update, finite);
}

int neap__on_device_moment(struct neap_net *net, int tensor, int moment, double *at, int send)
{
	return send ? net->backend->send_moment(net->on_backend, net, tensor, moment, at)
		    : net->backend->fetch_moment(net->on_backend, net, tensor, moment, at);
}

void neap__on_device_free(struct neap_net *net)
{
	net->parameters.kept = 0; /* nobody needs the weights, and the detail line stays */
	if (net->attached)
		neap__device_driver->detach(net->attached);
	if (net->device)
		neap__device_driver->close(net->device);
	net->attached = net->device = NULL;
}

const struct neap_memory_ops *neap__net_memory(const struct neap_net *net)
{
	return net && net->backend ? net->backend->memory : NULL;
}

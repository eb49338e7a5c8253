/* SPDX-License-Identifier: Apache-2.0 */
/* sound_pump.c: poll, read and send, on a thread of its own (sound_pump.h). */
#include "data/sound/sound_pump.h"
#include "base/fail.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BLOCK = 16384, LOOK_MS = 100 /* between two questions whether to end */ };

struct neap__sound_pump {
	struct neap__ask ask;
	pthread_t thread;
	int started;
	int from, near, far; /* near: written by the thread; far: read by the library */
	atomic_int error, interrupted;
	size_t bytes; /* in `block` */
	unsigned char block[BLOCK];
};

enum wake { READY, ENDED, INTERRUPTED };

/* Waits for bytes, for the end of whoever reads the socket (near; -1: nobody), or an interrupt. */
static enum wake wait_for(int from, int near, const struct neap__ask *ask)
{
	struct pollfd fds[2] = {{.fd = from, .events = POLLIN}, {.fd = near}};

	for (;;) {
		int n = poll(fds, 2, LOOK_MS);
		if (neap__asked_to_end(ask))
			return INTERRUPTED;
		if (n > 0 && fds[1].revents)
			return ENDED;
		if (n > 0 && fds[0].revents)
			return READY;
	}
}

static int send_all(int to, const unsigned char *data, size_t bytes)
{
	while (bytes > 0) {
		ssize_t n = send(to, data, bytes, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		data += n;
		bytes -= (size_t)n;
	}
	return 0;
}

static void *pump(void *user)
{
	struct neap__sound_pump *p = user;

	while (send_all(p->near, p->block, p->bytes) == 0) {
		enum wake wake = wait_for(p->from, p->near, &p->ask);
		p->bytes = 0;
		p->interrupted = wake == INTERRUPTED;
		if (wake != READY)
			break;
		ssize_t n = read(p->from, p->block, sizeof p->block);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		p->error = n < 0 ? errno : 0;
		if (n <= 0)
			break;
		p->bytes = (size_t)n;
	}
	shutdown(p->near, SHUT_WR);
	return NULL;
}

/* Reads the head into the block. */
static int read_head(struct neap__sound_pump *p)
{
	while (p->bytes < NEAP__SOUND_HEAD) {
		if (wait_for(p->from, -1, &p->ask) == INTERRUPTED)
			return neap__fail(NEAP_EINTERRUPTED, "interrupted before any sound came");
		ssize_t n = read(p->from, p->block + p->bytes, NEAP__SOUND_HEAD - p->bytes);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0)
			return neap__fail_errno(errno, "cannot read the standard input");
		if (n == 0)
			break;
		p->bytes += (size_t)n;
	}
	return 0;
}

static int start(struct neap__sound_pump *p)
{
	int ends[2];
	sigset_t all, old;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return neap__fail_errno(errno, "the standard input");
	p->near = ends[0];
	p->far = ends[1];
	sigfillset(&all); /* signals belong to the caller's threads */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int err = pthread_create(&p->thread, NULL, pump, p);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	p->started = err == 0;
	return err ? neap__fail_errno(err, "a thread that reads the standard input") : 0;
}

int neap__sound_pump_start(struct neap__sound_pump **out, int from,
	unsigned char head[NEAP__SOUND_HEAD], const struct neap__ask *ask)
{
	struct neap__sound_pump *p = calloc(1, sizeof *p);

	if (!p)
		return neap__fail_errno(ENOMEM, "the standard input");
	p->ask = *ask;
	p->from = from;
	p->near = p->far = -1;
	int rc = read_head(p);
	if (rc == 0) {
		memcpy(head, p->block, NEAP__SOUND_HEAD);
		rc = start(p);
	}
	if (rc < 0)
		neap__sound_pump_free(p);
	else
		*out = p;
	return rc;
}

int neap__sound_pump_fd(const struct neap__sound_pump *pump)
{
	return pump->far;
}

int neap__sound_pump_end(const struct neap__sound_pump *pump)
{
	if (pump->interrupted)
		return neap__fail(NEAP_EINTERRUPTED, "interrupted");
	return pump->error ? neap__fail_errno(pump->error, "cannot read the standard input") : 0;
}

void neap__sound_pump_free(struct neap__sound_pump *p)
{
	if (!p)
		return;
	if (p->far >= 0)
		close(p->far);
	if (p->started)
		pthread_join(p->thread, NULL);
	if (p->near >= 0)
		close(p->near);
	free(p);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* gate.c: refuses a call of an object that another call has. */
#include "base/gate.h"
#include "base/fail.h"

int neap__gate_enter(struct neap__gate *gate, const char *function, const char *what)
{
	if (neap__gate_try(gate))
		return 0;
	return neap__fail(NEAP_EUSAGE,
		"%s: this %s is in use by a call that has not returned. Make the call after that "
		"one, neither from its callbacks nor from another thread, or use another %s",
		function, what, what);
}

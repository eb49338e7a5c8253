/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_net.c: specifications of nets. What a net says of itself makes the same net again. */
#include "fuzz_files.h"
#include "nn/core/net_memory.h"
#include "nn/core/net_state.h"
#include "nn/spec.h"

#include <string.h>

static int parse(struct neap_net **out, const char *spec)
{
	struct neap_net_options o = NEAP_NET_OPTIONS_INIT;
	struct neap_net *net = calloc(1, sizeof *net);

	FUZZ_CHECK(net, "no memory");
	o.spec = spec;
	o.inputs = 7;
	o.classes = 3;
	net->options = o;
	net->blocks.memory = &neap__heap_memory;
	int rc = neap__net_parse(net);
	fuzz_line(rc);
	if (rc < 0) {
		neap_net_free(net);
		return rc;
	}
	*out = net;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	struct neap_net *net = NULL, *again = NULL;

	if (parse(&net, text) == 0) {
		FUZZ_CHECK(net->spec && net->nlayers > 0, "no layers");
		FUZZ_CHECK(parse(&again, net->spec) == 0, "%s: %s", net->spec, neap_detail());
		FUZZ_CHECK(strcmp(net->spec, again->spec) == 0, "%s, %s", net->spec, again->spec);
	}
	neap_net_free(net);
	neap_net_free(again);
	free(text);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sweep says of a model that is wrong: a loss or an adjoint that is not finite, and, with
 * `check`, states that differ when they are recomputed and bytes that are not reported.
 */
#include "smallmodel.h"

static void expect(int rc, int code, const char *part)
{
	if (rc != code || (code && !strstr(neap_detail(), part)))
		fail_msg("%d, not %d with '%s': %s", rc, code, part, rc ? neap_detail() : "");
}

static int run(int kind, struct small *m, int check, double *loss)
{
	const struct neap_sweep_options o = {
		.size = sizeof o, .memory = kind == SMALL_JOIN ? 2048 : 1024, .check = check};
	struct small_sweep s;
	double dx[2 * NUMBERS];
	int rc = small_create(&s, kind, m, &o);
	if (rc < 0)
		fail_msg("create %d: %s", kind, neap_detail());
	rc = small_run(&s, dx, loss);
	if (rc == 0)
		assert_true(small_right(&s, dx));
	small_free(&s);
	return rc;
}

static void sound(void **state)
{
	(void)state;
	for (int kind = 0; kind < SMALL_KINDS; kind++)
		for (int check = 0; check < 2; check++) {
			struct small m;
			double loss;
			small_init(&m);
			expect(run(kind, &m, check, &loss), 0, "");
		}
}

static void losses(void **state)
{
	static const double wrong[] = {NAN, INFINITY, -INFINITY};
	(void)state;
	for (int kind = 0; kind < SMALL_KINDS; kind++)
		for (int i = 0; i < 3; i++) {
			struct small m;
			double loss = 0;
			small_init(&m);
			m.loss = wrong[i];
			int rc = run(kind, &m, 0, &loss);
			expect(rc, NEAP_EDIVERGED, "turn returned the loss ");
			assert_non_null(strstr(neap_detail(), isnan(wrong[i]) ? "nan" : "inf"));
			assert_non_null(strstr(neap_detail(),
				kind == SMALL_JOIN ? "after 30 steps" : "after 40 steps"));
			assert_false(isfinite(loss)); /* the caller has it all the same */
		}
}

static void adjoints(void **state)
{
	double loss;
	(void)state;
	for (int kind = 0; kind < SMALL_KINDS; kind++) {
		struct small m;
		small_init(&m);
		m.infinite_from = -1;
		expect(run(kind, &m, 0, &loss), NEAP_EDIVERGED, "which turn wrote, is not finite");
		assert_non_null(strstr(neap_detail(), "number 3 is "));
		/* Without check it is seen at the end, with it where it begins. */
		m.infinite_from = 1 + (kind == SMALL_JOIN ? 5 : SMALL_STAGES - 1);
		expect(run(kind, &m, 0, &loss), NEAP_EDIVERGED,
			"the adjoint at step 0, which backward wrote, is not finite");
		expect(run(kind, &m, 1, &loss), NEAP_EDIVERGED, "which backward wrote");
		assert_null(strstr(neap_detail(), "at step 0,"));
	}
}

static void other_adjoints(void **state)
{
	struct neap_step_ops ops = small_ops();
	struct neap_sweep_options o = {.size = sizeof o, .steps = 10};
	struct neap_sweep *sweep;
	struct small m;
	double loss;
	(void)state;
	small_init(&m);
	ops.adjoint_real = 3;
	expect(neap_sweep_create(&sweep, &ops, &m, &o), NEAP_EUSAGE, "adjoint_real is 3");
	ops.adjoint_real = 8;
	ops.adjoint_bytes = 12;
	expect(neap_sweep_create(&sweep, &ops, &m, &o), NEAP_EUSAGE, "an adjoint of 12 bytes");
	/* Of unknown contents, it is not looked at. */
	ops = small_ops();
	ops.adjoint_real = 0;
	m.infinite_from = -1;
	assert_int_equal(neap_sweep_create(&sweep, &ops, &m, &o), 0);
	assert_int_equal(neap_sweep_run(sweep, NULL, NULL, &loss, NULL), 0);
	neap_sweep_free(sweep);
}

static void recomputed(void **state)
{
	double loss;
	(void)state;
	for (int kind = 0; kind < SMALL_KINDS; kind++) {
		struct small m;
		small_init(&m);
		m.counts = 1;
		expect(run(kind, &m, 0, &loss), 0, "");
		expect(run(kind, &m, 1, &loss), NEAP_EMODEL,
			"that differs from the one computed before");
	}
}

static void unreported(void **state)
{
	double loss;
	(void)state;
	for (int kind = SMALL_STEPS; kind <= SMALL_ONLINE; kind++) {
		struct small m;
		small_init(&m);
		m.reported = sizeof(double);
		expect(run(kind, &m, 0, &loss), 0, "");
		expect(run(kind, &m, 1, &loss), NEAP_EMODEL, "bytes in *used, but wrote byte ");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sound),
		cmocka_unit_test(losses),
		cmocka_unit_test(adjoints),
		cmocka_unit_test(other_adjoints),
		cmocka_unit_test(recomputed),
		cmocka_unit_test(unreported),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Files in the SHD layout: our own, those of other hands, and damaged ones. */
#include "spikes.h"
#include "data/formats/h5.h"
#include "sys/child_trial.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <zlib.h>

static void round_trip(void **state)
{
	(void)state;
	const char *path = scratch("round.h5");
	write_set(path, 200, 40, 60);
	struct neap_dataset *set;
	struct neap_dataset_info info = {.size = sizeof info};
	ok(neap_dataset_open(&set, path));
	neap_dataset_info(set, &info);
	assert_int_equal(info.samples, 200);
	assert_int_equal(info.inputs, 40);
	assert_int_equal(info.classes, 3);
	assert_int_equal(info.speakers, 4);
	assert_string_equal(info.name, path);
	assert_true(info.duration == 0.1);
	assert_string_equal(neap_dataset_class_name(set, 2), some_classes[2]);
	assert_string_equal(neap_dataset_speaker_name(set, 3), "dee");
	assert_null(neap_dataset_class_name(set, 3));
	assert_null(neap_dataset_class_name(set, -1));
	int64_t events = 0;
	for (int64_t k = 0; k < 200; k++) {
		int64_t i = k * 77 % 200; /* any order */
		struct neap_events e, want = some_events(1, i, 40, 60);
		ok(neap_dataset_read(set, i, &e));
		assert_int_equal(e.count, want.count);
		assert_int_equal(e.label, want.label);
		assert_int_equal(e.speaker, want.speaker);
		assert_true(e.duration == want.duration);
		for (int64_t j = 0; j < e.count; j++) {
			assert_true(e.time[j] == (double)(float)want.time[j]);
			assert_int_equal(e.unit[j], want.unit[j]);
		}
		events += e.count;
		neap_events_free(&e);
		neap_events_free(&want);
	}
	assert_int_equal(info.events, events);
	struct neap_events e;
	refused(neap_dataset_read(set, 200, &e), NEAP_EUSAGE, "sample 200");
	refused(neap_dataset_read(set, -1, &e), NEAP_EUSAGE, "sample -1");
	neap_dataset_close(set);
	neap_dataset_close(NULL);
	unlink(path);
}

static void empty_samples_and_large_ones(void **state)
{
	(void)state;
	const char *path = scratch("empty.h5");
	write_set(path, 5, 3, 0);
	struct neap_dataset *set;
	struct neap_events e;
	ok(neap_dataset_open(&set, path));
	ok(neap_dataset_read(set, 4, &e));
	assert_int_equal(e.count, 0);
	neap_events_free(&e);
	neap_dataset_close(set);
	write_set(path, 3, 65536, 100000); /* rows larger than HDF5's heaps */
	ok(neap_dataset_open(&set, path));
	for (int64_t i = 0; i < 3; i++) {
		struct neap_events want = some_events(1, i, 65536, 100000);
		ok(neap_dataset_read(set, i, &e));
		assert_int_equal(e.count, want.count);
		assert_memory_equal(e.unit, want.unit, (size_t)want.count * 2);
		neap_events_free(&e);
		neap_events_free(&want);
	}
	neap_dataset_close(set);
	unlink(path);
}

static void writer_refuses(void **state)
{
	(void)state;
	struct neap_shd_writer *writer;
	const char *path = scratch("refuse.h5");
	refused(neap_shd_create(&writer, path, 0), NEAP_EUSAGE, "0 channels");
	refused(neap_shd_create(&writer, "", 1), NEAP_EUSAGE, "empty");
	refused(neap_shd_create(&writer, "/nowhere/at/all.h5", 1), -ENOENT, "/nowhere/at/all.h5");
	double time[] = {0.1, NAN};
	uint16_t unit[] = {0, 5};
	struct neap_events e = {.count = 2, .time = time, .unit = unit, .label = 0, .speaker = -1};
	ok(neap_shd_create(&writer, path, 6));
	refused(neap_shd_add(writer, &e), NEAP_EUSAGE, "unit 5");
	time[1] = 0.2;
	unit[1] = 6;
	refused(neap_shd_add(writer, &e), NEAP_EUSAGE, "unit 6");
	unit[1] = 5;
	e.label = -1;
	refused(neap_shd_add(writer, &e), NEAP_EUSAGE, "label -1");
	e.label = 3;
	ok(neap_shd_add(writer, &e));
	refused(neap_shd_finish(writer, some_classes, 3, NULL, 0, NULL, 0), NEAP_EUSAGE, "label 3");
	assert_int_equal(access(path, F_OK), -1);
	ok(neap_shd_create(&writer, path, 6));
	ok(neap_shd_add(writer, &e));
	neap_shd_abort(writer);
	neap_shd_abort(NULL);
	assert_int_equal(access(path, F_OK), -1);
}

/* A full disk: one error, nothing left, and the process lives. /dev/shm-like limits by RLIMIT are
 * no full disk, so this needs a small file system: NEAP_SMALL_FS names a folder on one. */
static void full_disk(void **state)
{
	(void)state;
	const char *dir = getenv("NEAP_SMALL_FS");
	if (!dir) {
		print_message("# SKIP full disk: NEAP_SMALL_FS names no folder on a small disk\n");
		skip();
	}
	char path[4200];
	snprintf(path, sizeof path, "%s/full.h5", dir);
	struct neap_shd_writer *writer;
	int rc = neap_shd_create(&writer, path, 700);
	for (int64_t i = 0; rc >= 0 && i < 1 << 20; i++) {
		struct neap_events e = some_events(1, i, 700, 5000);
		rc = neap_shd_add(writer, &e);
		neap_events_free(&e);
	}
	assert_int_equal(rc, -ENOSPC);
	assert_non_null(strstr(neap_detail(), path));
	neap_shd_abort(writer);
	assert_int_equal(access(path, F_OK), -1);
}

/* ---- files of other hands ---- */

struct foreign {
	hid_t times, units, labels; /* types in the file */
	hsize_t chunk;		    /* 0: contiguous */
	int fixed_keys, no_labels, short_labels, scalar_times;
	double bad_time;
	int bad_unit, bad_label;
};

static hid_t half(void)
{
	hid_t type = H5Tcopy(H5T_IEEE_F32LE);
	H5Tset_fields(type, 15, 10, 5, 0, 10);
	H5Tset_size(type, 2);
	H5Tset_ebias(type, 15);
	return type;
}

enum { FOREIGN = 50 };

static void put(hid_t file, const char *name, hid_t type, hid_t memory, hsize_t n, hid_t creation,
	const void *data)
{
	hid_t links = H5Pcreate(H5P_LINK_CREATE), space = H5Screate_simple(1, &n, NULL);
	H5Pset_create_intermediate_group(links, 1);
	hid_t set = H5Dcreate2(file, name, type, space, links, creation, H5P_DEFAULT);
	assert_true(set >= 0);
	assert_true(H5Dwrite(set, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
	H5Dclose(set);
	H5Sclose(space);
	H5Pclose(links);
}

static void put_keys(hid_t file, int fixed)
{
	static const char rows[3][6] = {"null", "eins", "zwei"};
	static const char *const names[3] = {"null", "eins", "zwei"};
	hid_t type = H5Tcopy(H5T_C_S1);
	H5Tset_size(type, fixed ? 6 : H5T_VARIABLE);
	put(file, "/extra/keys", type, type, 3, H5P_DEFAULT,
		fixed ? (const void *)rows : (const void *)names);
	H5Tclose(type);
}

/* A file as other programs write it: old format, no attributes. */
static void write_foreign(const char *path, const struct foreign *f)
{
	hvl_t times[FOREIGN], units[FOREIGN];
	int64_t labels[FOREIGN];
	for (int i = 0; i < FOREIGN; i++) {
		struct neap_events e = some_events(2, i, 200, 40);
		int64_t *unit = malloc(((size_t)e.count + 1) * sizeof *unit);
		for (int64_t k = 0; k < e.count; k++)
			unit[k] = e.unit[k];
		if (i == 7 && f->bad_time != 0)
			e.time[0] = f->bad_time;
		if (i == 7 && f->bad_unit != 0)
			unit[0] = f->bad_unit;
		times[i] = (hvl_t){(size_t)e.count, e.time};
		units[i] = (hvl_t){(size_t)e.count, unit};
		labels[i] = i == 9 && f->bad_label ? f->bad_label : e.label;
		free(e.unit);
	}
	hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
	hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
	if (f->chunk)
		H5Pset_chunk(creation, 1, &f->chunk);
	hid_t vt = H5Tvlen_create(f->times), vu = H5Tvlen_create(f->units);
	hid_t mt = H5Tvlen_create(H5T_NATIVE_DOUBLE), mu = H5Tvlen_create(H5T_NATIVE_INT64);
	if (f->scalar_times)
		put(file, "/spikes/times", H5T_IEEE_F64LE, H5T_NATIVE_INT64, FOREIGN, H5P_DEFAULT,
			labels);
	else
		put(file, "/spikes/times", vt, mt, FOREIGN, creation, times);
	put(file, "/spikes/units", vu, mu, FOREIGN, creation, units);
	if (!f->no_labels)
		put(file, "/labels", f->labels, H5T_NATIVE_INT64, f->short_labels ? 49 : FOREIGN,
			H5P_DEFAULT, labels);
	put_keys(file, f->fixed_keys);
	put(file, "/extra/speaker", H5T_STD_U16LE, H5T_NATIVE_INT64, FOREIGN, H5P_DEFAULT, labels);
	H5Tclose(vt);
	H5Tclose(vu);
	H5Tclose(mt);
	H5Tclose(mu);
	H5Pclose(creation);
	H5Fclose(file);
	for (int i = 0; i < FOREIGN; i++) {
		free(times[i].p);
		free(units[i].p);
	}
}

static void check_foreign(const char *path, double tolerance)
{
	struct neap_dataset *set;
	struct neap_dataset_info info = {.size = sizeof info};
	ok(neap_dataset_open(&set, path));
	neap_dataset_info(set, &info);
	assert_int_equal(info.samples, FOREIGN);
	assert_int_equal(info.inputs, 200); /* the largest one, which cannot be that of SHD */
	assert_int_equal(info.inputs_least, 1);
	assert_int_equal(info.classes, 3);
	assert_string_equal(neap_dataset_class_name(set, 1), "eins");
	assert_int_equal(info.speakers, 3);
	double longest = 0;
	for (int64_t i = 0; i < FOREIGN; i++) {
		struct neap_events e, want = some_events(2, i, 200, 40);
		ok(neap_dataset_read(set, i, &e));
		assert_int_equal(e.count, want.count);
		assert_true(e.duration == 0);
		for (int64_t k = 0; k < e.count; k++) {
			assert_true(fabs(e.time[k] - want.time[k]) <= tolerance);
			assert_true(k == 0 || e.time[k - 1] <= e.time[k]);
			longest = fmax(longest, e.time[k]);
		}
		if (tolerance < 1e-6)
			assert_memory_equal(e.unit, want.unit, (size_t)e.count * 2);
		neap_events_free(&e);
		neap_events_free(&want);
	}
	assert_true(info.duration == longest);
	neap_dataset_close(set);
}

static void types_and_layouts(void **state)
{
	(void)state;
	const char *path = scratch("foreign.h5");
	hid_t f16 = half();
	struct {
		hid_t type;
		double tolerance;
	} times[] = {
		{f16, 1e-4}, {H5T_IEEE_F32LE, 1e-8}, {H5T_IEEE_F64BE, 0}, {H5T_IEEE_F32BE, 1e-8}};
	hid_t integers[] = {H5T_STD_U16LE, H5T_STD_U8LE, H5T_STD_I16BE, H5T_STD_I32LE,
		H5T_STD_U32BE, H5T_STD_I64LE, H5T_STD_U64LE};
	for (int i = 0; i < 28; i++) {
		struct foreign f = {.times = times[i % 4].type,
			.units = integers[i % 7],
			.labels = integers[(i + 3) % 7],
			.chunk = i % 3 == 0   ? 0
				 : i % 3 == 1 ? 7
					      : 50,
			.fixed_keys = i % 2};
		write_foreign(path, &f);
		check_foreign(path, times[i % 4].tolerance);
	}
	H5Tclose(f16);
	unlink(path);
}

/* What HDF5 before 1.10.7 makes of the references: shuffled, packed, summed. */
static void filters_undone(void **state)
{
	(void)state;
	enum { WIDTH = 16, N = 100, WANT = N * WIDTH, ROOM = 2 * WANT };
	unsigned char plain[WANT], shuffled[WANT], packed[ROOM];
	for (int i = 0; i < WANT; i++)
		plain[i] =
			(unsigned char)neap__random_below(1, NEAP__STREAM_TEST, 0, (uint64_t)i, 4);
	for (int i = 0; i < N; i++)
		for (int j = 0; j < WIDTH; j++)
			shuffled[j * N + i] = plain[i * WIDTH + j];
	uLongf bytes = ROOM - 4;
	assert_int_equal(compress2(packed, &bytes, shuffled, WANT, 6), Z_OK);
	const int filter[] = {H5Z_FILTER_SHUFFLE, H5Z_FILTER_DEFLATE, H5Z_FILTER_FLETCHER32};
	const int other[] = {H5Z_FILTER_SZIP};
	unsigned char *data = malloc(ROOM + NEAP__H5_SPARE), *spare = malloc(ROOM + NEAP__H5_SPARE);
	memcpy(data, packed, bytes);
	assert_null(neap__h5_unfilter(filter, 3, 0, WIDTH, &data, &spare, bytes + 4, WANT));
	assert_memory_equal(data, plain, WANT);
	memcpy(data, packed, bytes);
	assert_null(neap__h5_unfilter(filter, 3, 5, WIDTH, &data, &spare, bytes, WANT));
	assert_memory_equal(data, shuffled, WANT);
	memcpy(data, packed, bytes);
	assert_non_null(neap__h5_unfilter(filter, 3, 0, WIDTH, &data, &spare, bytes - 9, WANT));
	assert_non_null(neap__h5_unfilter(filter, 3, 0, WIDTH, &data, &spare, 3, WANT));
	assert_non_null(neap__h5_unfilter(filter, 1, 0, WIDTH, &data, &spare, WANT - 1, WANT));
	assert_non_null(neap__h5_unfilter(other, 1, 0, WIDTH, &data, &spare, WANT, WANT));
	/* A bomb stays in its room. */
	memset(shuffled, 0, WANT);
	bytes = ROOM;
	assert_int_equal(compress2(packed, &bytes, shuffled, WANT, 6), Z_OK);
	memcpy(data, packed, bytes);
	assert_non_null(neap__h5_unfilter(filter + 1, 1, 0, WIDTH, &data, &spare, bytes, 64));
	free(data);
	free(spare);
}

static void foreign_mistakes(void **state)
{
	(void)state;
	const char *path = scratch("mistake.h5");
	hid_t f32 = H5T_IEEE_F32LE, u16 = H5T_STD_U16LE, i32 = H5T_STD_I32LE;
	const struct {
		struct foreign f;
		const char *word;
	} cases[] = {
		{{.times = f32, .units = i32, .labels = u16, .bad_time = NAN},
			"/spikes/times of sample 7"},
		{{.times = f32, .units = i32, .labels = u16, .bad_time = -1}, "has -1"},
		{{.times = f32, .units = i32, .labels = u16, .bad_time = INFINITY}, "has inf"},
		{{.times = f32, .units = i32, .labels = u16, .bad_time = 1e9}, "has 1e+09"},
		{{.times = f32, .units = i32, .labels = u16, .bad_unit = -3}, "has -3"},
		{{.times = f32, .units = i32, .labels = u16, .bad_unit = 70000}, "has 70000"},
		{{.times = f32, .units = u16, .labels = i32, .bad_label = -1},
			"'/labels'[9] is -1"},
		{{.times = f32, .units = u16, .labels = i32, .bad_label = 3}, "'/labels'[9] is 3"},
		{{.times = f32, .units = u16, .labels = f32}, "'/labels' must contain integers"},
		{{.times = f32, .units = f32, .labels = u16}, "rows of integers"},
		{{.times = i32, .units = u16, .labels = u16}, "rows of floating-point"},
		{{.times = f32, .units = u16, .labels = u16, .no_labels = 1},
			"no data set '/labels'"},
		{{.times = f32, .units = u16, .labels = u16, .short_labels = 1},
			"49 entries, but there are 50"},
		{{.times = f32, .units = u16, .labels = u16, .scalar_times = 1}, "'/spikes/times'"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct neap_dataset *set;
		write_foreign(path, &cases[i].f);
		refused(neap_dataset_open(&set, path), NEAP_EFORMAT, cases[i].word);
		assert_non_null(strstr(neap_detail(), path));
		assert_null(set);
	}
	/* A file of nothing, of text, none at all, a folder, a pipe. */
	struct neap_dataset *set;
	hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
	H5Fclose(file);
	refused(neap_dataset_open(&set, path), NEAP_EFORMAT, "/spikes/times");
	FILE *text = fopen(path, "w");
	fputs("hello\n", text);
	fclose(text);
	refused(neap_dataset_open(&set, path), NEAP_EFORMAT, "not an HDF5 file");
	assert_int_equal(truncate(path, 0), 0);
	refused(neap_dataset_open(&set, path), NEAP_EFORMAT, "is empty");
	unlink(path);
	refused(neap_dataset_open(&set, path), -ENOENT, path);
	refused(neap_dataset_open(&set, "/tmp"), -EISDIR, "is a folder");
	assert_int_equal(mkfifo(path, 0600), 0);
	refused(neap_dataset_open(&set, path), NEAP_EFORMAT, "regular");
	unlink(path);
}

/* ---- damage ---- */

/* How often to try a damage: more on demand. */
static int rounds(int fallback)
{
	const char *given = getenv("NEAP_ROUNDS");
	return given ? atoi(given) : fallback;
}

static char *slurp(const char *path, size_t *n)
{
	struct stat st;
	int fd = open(path, O_RDONLY);
	assert_int_equal(fstat(fd, &st), 0);
	char *data = malloc((size_t)st.st_size);
	*n = (size_t)st.st_size;
	assert_int_equal(read(fd, data, *n), st.st_size);
	close(fd);
	return data;
}

static void spill(const char *path, const char *data, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_int_equal(write(fd, data, n), (ssize_t)n);
	close(fd);
}

/* Opens and reads all of it. 0: fine; 1: refused; 2: an answer that must not be. */
static int read_all(const char *path)
{
	struct neap_dataset *set;
	struct neap_dataset_info info = {.size = sizeof info};
	int rc = neap_dataset_open(&set, path);
	if (rc < 0)
		return rc == NEAP_EFORMAT && neap_detail()[0] ? 1 : 2;
	neap_dataset_info(set, &info);
	for (int64_t i = 0; rc >= 0 && i < info.samples; i++) {
		struct neap_events e;
		rc = neap_dataset_read(set, i, &e);
		if (rc < 0)
			break;
		for (int64_t k = 0; k < e.count; k++)
			if (e.unit[k] >= info.inputs || !(e.time[k] >= 0))
				rc = -1;
		neap_events_free(&e);
	}
	neap_dataset_close(set);
	return rc >= 0 ? 0 : rc == NEAP_EFORMAT ? 1 : 2;
}

static int try_data(void (*fn)(void *arg), void *arg)
{
	return neap__child_trial(fn, arg, 10, NULL);
}

/* In a process of its own: HDF5 1.10 itself may crash on damaged structures of old files. */
static int read_apart(const char *path)
{
	int status;
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		/* cmocka catches these; here they are the answer. */
		static const int crash[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
		for (int i = 0; i < 5; i++)
			signal(crash[i], SIG_DFL);
		alarm(60);
		neap_data_set_trial(try_data);
		_exit(read_all(path));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

static void cut_short(void **state)
{
	(void)state;
	const char *path = scratch("cut.h5"), *cut = scratch("cut2.h5");
	for (int foreign = 0; foreign < 2; foreign++) {
		if (foreign)
			write_foreign(path, &(struct foreign){.times = H5T_IEEE_F32LE,
						    .units = H5T_STD_U16LE,
						    .labels = H5T_STD_U16LE,
						    .chunk = 16});
		else
			write_set(path, 50, 200, 40);
		size_t n;
		char *data = slurp(path, &n);
		assert_int_equal(read_all(path), 0);
		const size_t few = TEST_SANITIZED ? 4 : 1; /* a child process each */
		for (size_t k = 0; k < n;
			k += few * (k < 300 || n - k < 100 ? 1 + k % 3 : n / 120)) {
			spill(cut, data, k);
			assert_int_equal(read_apart(cut), 1);
		}
		free(data);
	}
	unlink(path);
	unlink(cut);
}

/* Our own files: no flipped bit may crash, hang or give an impossible spike. */
static void flipped_bits(void **state)
{
	(void)state;
	uint64_t seed = test_seed(11);
	const char *path = scratch("flip.h5"), *flip = scratch("flip2.h5");
	int count[3] = {0};
	int total = rounds(TEST_SANITIZED ? 50 : 200);
	write_set(path, 50, 200, 40);
	size_t n;
	char *data = slurp(path, &n);
	for (int round = 0; round < total; round++) {
		size_t at =
			(size_t)neap__random_below(seed, NEAP__STREAM_TEST, 1, (uint64_t)round, n);
		char old = data[at];
		data[at] = (char)(old ^ (1 << round % 8));
		spill(flip, data, n);
		int answer = read_apart(flip);
		if (answer > 1)
			fail_msg("byte %zu, bit %d: %d", at, round % 8, answer);
		count[answer]++;
		data[at] = old;
	}
	print_message("# of %d files with one flipped bit, %d were refused\n", total, count[1]);
	free(data);
	unlink(path);
	unlink(flip);
}

/* Other people's files, in the heap and the references alone: what is read without HDF5. */
static void flipped_rows(void **state)
{
	(void)state;
	uint64_t seed = test_seed(12);
	const char *path = scratch("rows.h5"), *flip = scratch("rows2.h5");
	write_foreign(path,
		&(struct foreign){
			.times = H5T_IEEE_F32LE, .units = H5T_STD_U16LE, .labels = H5T_STD_U16LE});
	size_t n, heaps = 0;
	char *data = slurp(path, &n);
	for (size_t k = 0; k + 16 < n; k++) {
		if (memcmp(data + k, "GCOL", 4) != 0)
			continue;
		heaps++;
		for (int round = 0; round < rounds(100); round++) {
			/* Headers of the heap and of its objects, or anything. */
			size_t span = round % 2 ? 64 : 4096;
			size_t at = k + (size_t)neap__random_below(seed, NEAP__STREAM_TEST,
						(uint32_t)heaps, (uint64_t)round, span);
			if (at >= n)
				continue;
			char old = data[at];
			data[at] = (char)(old ^ (1 << round / 2 % 8));
			spill(flip, data, n);
			int answer = read_apart(flip);
			if (answer > 1)
				fail_msg("byte %zu, bit %d: %d", at, round / 2 % 8, answer);
			data[at] = old;
		}
	}
	assert_true(heaps >= 1);
	free(data);
	unlink(path);
	unlink(flip);
}

/* Numbers of all bits of a type of 16 bits, and some of others, against those of HDF5. */
static void check_numbers(hid_t type, enum neap__vlen_layout layout)
{
	enum { COUNT = 65536 };
	struct neap__h5_file file = {.path = "numbers"};
	struct neap__vlen vlen = {.file = &file, .name = "x", .base = type};
	size_t bytes = vlen.base_bytes = H5Tget_size(type);
	int real = H5Tget_class(type) == H5T_FLOAT;
	char *in = malloc(8 * COUNT), *want = malloc(8 * COUNT), *got = malloc(8 * COUNT);

	vlen.layout = neap__vlen_layout_of(type);
	assert_int_equal(vlen.layout, layout);
	for (uint64_t i = 0; i < COUNT; i++) {
		uint64_t bits = i | i * 0x9e3779b97f4a7c15 << 16;
		memcpy(in + i * bytes, &bits, bytes);
	}
	memcpy(want, in, bytes * COUNT);
	assert_true(H5Tconvert(type, real ? H5T_NATIVE_DOUBLE : H5T_NATIVE_INT64, COUNT, want, NULL,
			    H5P_DEFAULT) >= 0);
	memcpy(got, in, bytes * COUNT);
	ok(neap__vlen_numbers(&vlen, COUNT, got, got)); /* where they are */
	for (int i = 0; i < COUNT; i++) {
		double a = ((double *)want)[i], b = ((double *)got)[i];
		if (!(real && isnan(a) && isnan(b)) && memcmp(&a, &b, sizeof a) != 0)
			fail_msg("number %d: %a and %a", i, a, b);
	}
	ok(neap__vlen_numbers(&vlen, COUNT, in, want));
	assert_memory_equal(want, got, 8 * COUNT);
	free(in);
	free(want);
	free(got);
}

static void numbers_as_of_hdf5(void **state)
{
	(void)state;
	hid_t half = H5Tcopy(H5T_IEEE_F32LE);
	assert_true(H5Tset_fields(half, 15, 10, 5, 0, 10) >= 0 && H5Tset_size(half, 2) >= 0 &&
		    H5Tset_ebias(half, 15) >= 0);
	check_numbers(half, NEAP__VLEN_HALF);
	assert_true(H5Tset_ebias(half, 16) >= 0);
	check_numbers(half, NEAP__VLEN_OTHER);
	H5Tclose(half);
	check_numbers(H5T_IEEE_F32LE, NEAP__VLEN_FLOAT);
	check_numbers(H5T_IEEE_F64LE, NEAP__VLEN_DOUBLE);
	check_numbers(H5T_IEEE_F32BE, NEAP__VLEN_OTHER);
	check_numbers(H5T_STD_U8LE, NEAP__VLEN_U8);
	check_numbers(H5T_STD_U16LE, NEAP__VLEN_U16);
	check_numbers(H5T_STD_I32LE, NEAP__VLEN_I32);
	check_numbers(H5T_STD_I64LE, NEAP__VLEN_I64);
	check_numbers(H5T_STD_U64LE, NEAP__VLEN_OTHER);
	check_numbers(H5T_STD_I16BE, NEAP__VLEN_OTHER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trip),
		cmocka_unit_test(empty_samples_and_large_ones),
		cmocka_unit_test(writer_refuses),
		cmocka_unit_test(full_disk),
		cmocka_unit_test(types_and_layouts),
		cmocka_unit_test(numbers_as_of_hdf5),
		cmocka_unit_test(filters_undone),
		cmocka_unit_test(foreign_mistakes),
		cmocka_unit_test(cut_short),
		cmocka_unit_test(flipped_bits),
		cmocka_unit_test(flipped_rows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

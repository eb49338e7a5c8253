/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HDF5 files that are made to harm: which have HDF5 read other files, claim more than they hold, or
 * take long to read. Each is refused by the name of what is wrong, before anything is read of it.
 */
#include "spikes.h"

#include <fcntl.h>
#include <hdf5.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { SAMPLES = 20 };

static const char *path;

/* A sound file, open to be spoilt. */
static hid_t spoil(void)
{
	write_set(path, SAMPLES, 40, 30);
	hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
	assert_true(file >= 0);
	return file;
}

static void refuses(hid_t file, const char *words)
{
	struct neap_dataset *set;
	if (file >= 0)
		H5Fclose(file);
	refused(neap_dataset_open(&set, path), NEAP_EFORMAT, words);
	unlink(path);
}

static void drop(hid_t file, const char *name)
{
	assert_true(H5Ldelete(file, name, H5P_DEFAULT) >= 0);
}

static void links(void **state)
{
	static const char *const names[] = {"/spikes", "/labels", "/extra"};
	const char *other = scratch("other.h5"), *pipe = scratch("pipe");
	(void)state;
	write_set(other, SAMPLES, 40, 30);
	assert_int_equal(mkfifo(pipe, 0600), 0);
	for (int i = 0; i < 3; i++) {
		hid_t file = spoil();
		drop(file, names[i]);
		assert_true(H5Lcreate_external(other, names[i], file, names[i], H5P_DEFAULT,
				    H5P_DEFAULT) >= 0);
		refuses(file, "is an external link to '");
		file = spoil();
		drop(file, names[i]);
		/* Opening it would wait for a writer for ever. */
		assert_true(H5Lcreate_external(
				    pipe, "/", file, names[i], H5P_DEFAULT, H5P_DEFAULT) >= 0);
		refuses(file, "is an external link to '");
		file = spoil();
		assert_true(
			H5Lmove(file, names[i], file, "/elsewhere", H5P_DEFAULT, H5P_DEFAULT) >= 0);
		assert_true(H5Lcreate_soft(
				    "/elsewhere", file, names[i], H5P_DEFAULT, H5P_DEFAULT) >= 0);
		refuses(file, "is a soft link to '/elsewhere'");
	}
	unlink(other);
	unlink(pipe);
	assert_int_equal(mkfifo(path, 0600), 0);
	refuses(-1, "is not a regular file");
}

/* A data set of `count` numbers in place of `name`. */
static void replace(hid_t file, const char *name, hid_t type, hsize_t count, hid_t creation)
{
	hid_t space = H5Screate_simple(1, &count, NULL);
	drop(file, name);
	hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
	assert_true(set >= 0);
	H5Dclose(set);
	H5Sclose(space);
	H5Pclose(creation);
}

static hid_t text(size_t size)
{
	hid_t type = H5Tcopy(H5T_C_S1);
	H5Tset_size(type, size);
	return type;
}

static void external_storage(void **state)
{
	(void)state;
	hid_t file = spoil(), creation = H5Pcreate(H5P_DATASET_CREATE);
	H5Pset_external(creation, "/etc/passwd", 0, SAMPLES);
	replace(file, "/labels", H5T_STD_U8LE, SAMPLES, creation);
	refuses(file, "'/labels' keeps its data in other files");
	file = spoil();
	creation = H5Pcreate(H5P_DATASET_CREATE);
	hid_t type = text(16);
	H5Pset_external(creation, "/etc/passwd", 0, 48);
	replace(file, "/extra/keys", type, 3, creation);
	H5Tclose(type);
	refuses(file, "'/extra/keys' keeps its data in other files");
}

static void virtual_sets(void **state)
{
	const char *other = scratch("other.h5");
	const hsize_t count = SAMPLES;
	(void)state;
	write_set(other, SAMPLES, 40, 30);
	hid_t file = spoil(), creation = H5Pcreate(H5P_DATASET_CREATE);
	hid_t space = H5Screate_simple(1, &count, NULL);
	assert_true(H5Pset_virtual(creation, space, other, "/labels", space) >= 0);
	H5Sclose(space);
	replace(file, "/labels", H5T_STD_U16LE, SAMPLES, creation);
	refuses(file, "'/labels' is virtual");
	unlink(other);
}

static void filters(void **state)
{
	const hsize_t chunk = SAMPLES;
	(void)state;
	hid_t file = spoil(), creation = H5Pcreate(H5P_DATASET_CREATE);
	H5Pset_chunk(creation, 1, &chunk);
	assert_true(H5Pset_scaleoffset(creation, H5Z_SO_INT, 3) >= 0);
	replace(file, "/labels", H5T_STD_U16LE, SAMPLES, creation);
	refuses(file, "a filter other than");
	file = spoil();
	creation = H5Pcreate(H5P_DATASET_CREATE);
	H5Pset_chunk(creation, 1, &chunk);
	/* A number of a plugin, which nobody loads. */
	H5Pset_filter(creation, 32015, H5Z_FLAG_OPTIONAL, 0, NULL);
	replace(file, "/labels", H5T_STD_U16LE, SAMPLES, creation);
	refuses(file, "a filter other than");
}

static long peak(void)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_maxrss;
}

/* Rows and chunks that were never written cost nothing in the file. */
static void claims(void **state)
{
	static const hsize_t rows[] = {(hsize_t)1 << 28, (hsize_t)1 << 40, 1000000};
	long before = peak();
	(void)state;
	for (int k = 0; k < 6; k++) {
		const hsize_t chunk = k < 3 ? 0 : 1000000;
		hid_t file = spoil(), creation = H5Pcreate(H5P_DATASET_CREATE);
		hid_t type = H5Tvlen_create(H5T_IEEE_F64LE);
		if (chunk)
			H5Pset_chunk(creation, 1, &chunk);
		else
			H5Pset_alloc_time(creation, H5D_ALLOC_TIME_LATE);
		replace(file, "/spikes/times", type, rows[k % 3], creation);
		H5Tclose(type);
		refuses(file, "more than its stored bytes can hold");
	}
	assert_true(peak() - before < 65536); /* KiB */
}

static long long calls_of_read(void)
{
	char line[100];
	long long calls = -1;
	FILE *io = fopen("/proc/self/io", "re");
	while (io && fgets(line, sizeof line, io))
		sscanf(line, "syscr: %lld", &calls);
	if (io)
		fclose(io);
	return calls;
}

static void put_little(unsigned char *p, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		p[i] = (unsigned char)(value >> 8 * i);
}

/*
 * One heap of `rows` objects of a double each, and rows that refer to them, the last object first;
 * or, `shared`, all to one object of all bytes.
 */
static void write_heap(hsize_t rows, int shared)
{
	const hsize_t bytes = 16 + 24 * rows;
	hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
	hid_t creation = H5Pcreate(H5P_DATASET_CREATE), group[2];
	hid_t type[2] = {H5Tvlen_create(H5T_IEEE_F64LE), H5Tvlen_create(H5T_STD_U64LE)};
	static const char *const names[2] = {"/spikes/times", "/spikes/units"};
	haddr_t at[2], heap;
	H5Pset_alloc_time(creation, H5D_ALLOC_TIME_EARLY);
	group[0] = H5Gcreate2(file, "/spikes", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	H5Gclose(group[0]);
	for (int i = 0; i < 4; i++) {
		hsize_t count = i == 2 ? bytes : rows;
		hid_t space = H5Screate_simple(1, &count, NULL);
		hid_t set = H5Dcreate2(file,
			i < 2	 ? names[i]
			: i == 2 ? "/heap"
				 : "/labels",
			i < 2 ? type[i] : H5T_STD_U8LE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
		assert_true(set >= 0);
		*(i < 2 ? &at[i] : &heap) = i < 3 ? H5Dget_offset(set) : heap;
		H5Dclose(set);
		H5Sclose(space);
	}
	H5Pclose(creation);
	H5Tclose(type[0]);
	H5Tclose(type[1]);
	H5Fclose(file);

	unsigned char *image = calloc(1, bytes), *reference = calloc(rows, 16);
	memcpy(image, "GCOL\1", 5);
	put_little(image + 8, bytes, 8);
	for (hsize_t i = 0; i < rows; i++) {
		unsigned char *object = image + 16 + 24 * i;
		put_little(object, shared ? 1 : i + 1, 2);
		put_little(object + 8, shared ? bytes - 32 : 8, 8);
		put_little(reference + 16 * i, shared ? (bytes - 32) / 8 : 1, 4);
		put_little(reference + 16 * i + 4, heap, 8);
		put_little(reference + 16 * i + 12, shared ? 1 : rows - i, 4);
	}
	int fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(pwrite(fd, image, bytes, (off_t)heap), (ssize_t)bytes);
	for (int i = 0; i < 2; i++)
		assert_int_equal(
			pwrite(fd, reference, 16 * rows, (off_t)at[i]), (ssize_t)(16 * rows));
	close(fd);
	free(image);
	free(reference);
}

/* A heap is walked once, however many rows are in it. */
static void one_heap(void **state)
{
	struct neap_dataset *set;
	struct neap_events e;
	(void)state;
	write_heap(60000, 0);
	long long before = calls_of_read();
	ok(neap_dataset_open(&set, path));
	for (int64_t i = 0; i < 60000; i += 7) {
		ok(neap_dataset_read(set, i, &e));
		assert_int_equal(e.count, 1);
		neap_events_free(&e);
	}
	neap_dataset_close(set);
	assert_true(calls_of_read() - before < 4 * 60000);
	unlink(path);
	write_heap(1000, 1);
	refuses(-1, "its rows claim more bytes than the file has");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(links),
		cmocka_unit_test(external_storage),
		cmocka_unit_test(virtual_sets),
		cmocka_unit_test(filters),
		cmocka_unit_test(claims),
		cmocka_unit_test(one_heap),
	};
	path = strdup(scratch("hostile.h5"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}

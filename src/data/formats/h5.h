/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h5.h: the parts of HDF5 that neap uses, made safe: one thread at a time, no error stack on
 * standard error, and sizes that are checked before memory is allocated. Every call of HDF5 stands
 * between neap__h5_enter and neap__h5_leave.
 */
#ifndef NEAP_DATA_FORMATS_H5_H
#define NEAP_DATA_FORMATS_H5_H

#include <hdf5.h>
#include <stddef.h>
#include <stdint.h>
#include <neap/status.h>

/* The caller's error printing, put back by leave. */
struct neap__h5_guard {
	H5E_auto2_t print;
	void *data;
};
void neap__h5_enter(struct neap__h5_guard *guard);
void neap__h5_leave(const struct neap__h5_guard *guard);

/* A file open for reading, through HDF5 and beside it. */
struct neap__h5_file {
	hid_t id;
	int fd;
	uint64_t bytes;			    /* of the file */
	const char *path;		    /* borrowed; for messages */
	size_t address_bytes, length_bytes; /* of numbers in its structures */
	int is_other;			    /* 1: opening it failed because it is not HDF5 */
};

/*
 * 0 or a negative code. The line about a file that is not HDF5 depends on what else is in its
 * folder, which may have to be opened with HDF5; so whoever has no lock adds it (other_file.c).
 */
int neap__h5_open(struct neap__h5_file *file, const char *path);
/* Refuses such a file. Opens files with HDF5: without its lock. NEAP_EFORMAT. */
int neap__other_file(const char *path);
void neap__h5_close(struct neap__h5_file *file);
/*
 * Is there an object of the absolute name, reached through hard links alone? 1, 0, or NEAP_EFORMAT
 * where a link on the way leads elsewhere: links that are soft, external or user-defined are
 * refused unopened (h5_object.c).
 */
enum { NEAP__H5_PATH = 1024 /* of a name, at most */ };
int neap__h5_has(const struct neap__h5_file *file, const char *name);
/*
 * A data set whose bytes are in the file itself: no external storage, no virtual
 * data set, no filters but deflate, shuffle and fletcher32; and which claims no more than it may
 * hold: chunks and rows unpack to NEAP__H5_MOST_UNPACKED times what is stored, at most.
 */
enum { NEAP__H5_DIMS = 4, NEAP__H5_BLOCK_DIMS = 3 /* of neap__h5_block_open */ };
struct neap__h5_set {
	hid_t id, type, creation;
	hsize_t count; /* elements in all */
	int dims;
	hsize_t size[NEAP__H5_DIMS];
	int elsewhere; /* 1: it was refused since its bytes are elsewhere, or packed by a filter */
};
/* One of one dimension, of none (a scalar) or one, of one to three, or of none to four. 0 or
 * NEAP_EFORMAT; close it only after 0. */
int neap__h5_set_open(struct neap__h5_set *set, const struct neap__h5_file *file, const char *name);
int neap__h5_list_open(
	struct neap__h5_set *set, const struct neap__h5_file *file, const char *name);
int neap__h5_block_open(
	struct neap__h5_set *set, const struct neap__h5_file *file, const char *name);
int neap__h5_any_open(struct neap__h5_set *set, const struct neap__h5_file *file, const char *name);
void neap__h5_set_close(struct neap__h5_set *set);
/* Deflate makes 258 bytes of 2 bits, at best; and what any file may claim. */
#define NEAP__H5_MOST_UNPACKED 1032
#define NEAP__H5_FREE_BYTES (1 << 20)
/* A number in an attribute of the root; 1 found, 0 not there, or an error. */
int neap__h5_attribute(const struct neap__h5_file *file, const char *name, double *value);
/* One-dimensional data sets of exactly `count` numbers; *out from malloc. */
int neap__h5_integers(const struct neap__h5_file *file, const char *name, int64_t count,
	int64_t least, int64_t most, int32_t **out);
int neap__h5_reals(const struct neap__h5_file *file, const char *name, int64_t count, double **out);
/* Strings, of fixed or variable length, at most `most` of them. */
int neap__h5_strings(
	const struct neap__h5_file *file, const char *name, int most, char ***out, int *count);

/*
 * Rows of variable length. HDF5 1.10 trusts the length kept beside a row: a flipped
 * bit there makes it read and write outside its buffers. So the references and the
 * global heap (HDF5 File Format Specification 3.0, III.E) are read here, with
 * every number checked against the file.
 */
/* Layouts of numbers that are read without HDF5; OTHER: it converts them. */
enum neap__vlen_layout {
	NEAP__VLEN_OTHER,
	NEAP__VLEN_HALF,
	NEAP__VLEN_FLOAT,
	NEAP__VLEN_DOUBLE,
	NEAP__VLEN_U8,
	NEAP__VLEN_U16,
	NEAP__VLEN_I32,
	NEAP__VLEN_I64,
};
struct neap__vlen {
	const struct neap__h5_file *file; /* borrowed */
	const char *name;		  /* borrowed */
	hid_t base;			  /* type of an element in the file */
	size_t base_bytes;
	enum neap__vlen_layout layout;
	int64_t rows;
	unsigned char *reference; /* [rows * reference_bytes] as in the file */
	size_t reference_bytes;
	unsigned char *row; /* the row read last */
	int64_t row_room;
	struct neap__heap_index *index; /* vlen_index.c */
};

/*
 * `kind`: class of the elements (H5T_FLOAT, H5T_INTEGER), or H5T_STRING. A data set has one
 * dimension; texts may have any, all of which are rows, but then lie in one piece.
 */
int neap__vlen_open(struct neap__vlen *vlen, const struct neap__h5_file *file, const char *name,
	H5T_class_t kind);
uint32_t neap__vlen_length(const struct neap__vlen *vlen, int64_t row);
/* The row's bytes: valid until the next call. */
int neap__vlen_row(
	struct neap__vlen *vlen, int64_t row, const unsigned char **data, uint32_t *length);
void neap__vlen_close(struct neap__vlen *vlen);

/* A row as it lies in the file, in one piece. */
struct neap__vlen_place {
	uint64_t offset;
	uint32_t length;
};
int neap__vlen_place(struct neap__vlen *vlen, int64_t row, struct neap__vlen_place *place);
/* `count` elements from `first` on, as vlen_numbers gives them; `out` has room for 8 bytes each. */
int neap__vlen_part(const struct neap__vlen *vlen, const struct neap__vlen_place *place,
	uint32_t first, uint32_t count, void *out);
/*
 * Converts `count` elements as they lie in the file to doubles, or to int64_t if they are integers.
 * `out` has room for 8 bytes each, and may be the address of `bytes`. 0 or NEAP_EFORMAT.
 */
int neap__vlen_numbers(const struct neap__vlen *vlen, size_t count, const void *bytes, void *out);
enum neap__vlen_layout neap__vlen_layout_of(hid_t type);

/*
 * vlen_index.c: where the objects of the heap collections lie. A collection is walked once, when a
 * row of it is first asked for. Time and memory are in proportion to the file: no collection is
 * walked twice, and all together may not be larger than the file.
 */
int neap__heap_index_new(struct neap__vlen *vlen);
void neap__heap_index_free(struct neap__heap_index *index);
/* The place and the size of object `number` in the collection at `address`. */
int neap__heap_index_find(struct neap__vlen *vlen, uint64_t address, unsigned number,
	uint64_t *offset, uint64_t *size);

/* vlen.c, for its other files: bytes of the file, checked; what is wrong with it; a number. */
int neap__vlen_read_at(const struct neap__vlen *vlen, void *data, size_t bytes, uint64_t offset);
int neap__vlen_damaged(const struct neap__vlen *vlen, const char *what);
uint64_t neap__h5_little(const unsigned char *p, size_t bytes);

/*
 * Undoes the filters of a chunk, last one first; bit i of `skipped` set: filter i was
 * not applied. *data has `bytes` bytes, elements of `width`; both *data and *spare
 * have room for max(bytes, want) + NEAP__H5_SPARE and may change places. NULL, or
 * what is wrong. (HDF5 itself no longer filters rows, but its older versions did.)
 */
enum { NEAP__H5_SPARE = 64 };
const char *neap__h5_unfilter(const int *filter, int count, uint32_t skipped, size_t width,
	unsigned char **data, unsigned char **spare, size_t bytes, size_t want);

#endif

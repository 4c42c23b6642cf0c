/* Ranks of MPI that write interleaved blocks into one file, and read each other's.
 *
 *   mpirun -n 4 mpi_io PATH...
 *
 * Several paths lead to the same file by several mounts: each rank takes the next in turn. The
 * first half of the file is written block by block at its place, the second through a view of
 * strides, which the library may bring together before it writes.
 */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* No multiple of a page: neighbours share pages, and chunks of a blob. */
#define BLOCK_LEN 10007
#define BLOCKS 64

static int rank, ranks;

static void check(int is_good, const char *what, long where)
{
    if (is_good)
        return;
    fprintf(stderr, "rank %d: %s (%ld)\n", rank, what, where);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

#define DONE(call) check((call) == MPI_SUCCESS, #call, 0)

/* What a block has that this rank wrote. */
static void fill(unsigned char *block, int by, int number)
{
    for (int at = 0; at < BLOCK_LEN; at++)
        block[at] = (unsigned char)(by * 61 + number * 7 + at / 3);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    check(argc > 1, "usage: mpi_io PATH...", argc);
    const char *path = argv[1 + rank % (argc - 1)];
    MPI_Offset half = (MPI_Offset)BLOCKS * ranks * BLOCK_LEN;
    unsigned char *mine = malloc((size_t)BLOCKS * BLOCK_LEN);
    unsigned char *read = malloc(BLOCK_LEN), *wanted = malloc(BLOCK_LEN);
    check(mine && read && wanted, "no memory", 0);

    /* The first rank makes it, and the others find it where they look. */
    MPI_File file;
    if (rank == 0) {
        DONE(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR,
                           MPI_INFO_NULL, &file));
        DONE(MPI_File_close(&file));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    DONE(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &file));

    for (int number = 0; number < BLOCKS; number++) {
        MPI_Offset at = ((MPI_Offset)number * ranks + rank) * BLOCK_LEN;
        unsigned char *block = mine + (size_t)number * BLOCK_LEN;
        fill(block, rank, number);
        DONE(MPI_File_write_at_all(file, at, block, BLOCK_LEN, MPI_BYTE, MPI_STATUS_IGNORE));
    }
    MPI_Datatype strides;
    MPI_Type_vector(BLOCKS, BLOCK_LEN, BLOCK_LEN * ranks, MPI_BYTE, &strides);
    MPI_Type_commit(&strides);
    MPI_Offset begin = half + (MPI_Offset)rank * BLOCK_LEN;
    DONE(MPI_File_set_view(file, begin, MPI_BYTE, strides, "native", MPI_INFO_NULL));
    DONE(MPI_File_write_all(file, mine, BLOCKS * BLOCK_LEN, MPI_BYTE, MPI_STATUS_IGNORE));
    DONE(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    DONE(MPI_File_sync(file));
    MPI_Barrier(MPI_COMM_WORLD);

    MPI_Offset size;
    DONE(MPI_File_get_size(file, &size));
    check(size == 2 * half, "the file has another size", (long)size);
    for (int part = 0; part < 2; part++) {
        for (int number = 0; number < BLOCKS; number++) {
            int by = (rank + 1 + number) % ranks;
            MPI_Offset at = part * half + ((MPI_Offset)number * ranks + by) * BLOCK_LEN;
            fill(wanted, by, number);
            DONE(MPI_File_read_at_all(file, at, read, BLOCK_LEN, MPI_BYTE, MPI_STATUS_IGNORE));
            check(memcmp(read, wanted, BLOCK_LEN) == 0, "another block was read", (long)at);
        }
    }
    DONE(MPI_File_set_size(file, half));
    DONE(MPI_File_get_size(file, &size));
    check(size == half, "the file was not cut", (long)size);
    DONE(MPI_File_close(&file));
    MPI_Type_free(&strides);
    MPI_Finalize();
    return 0;
}

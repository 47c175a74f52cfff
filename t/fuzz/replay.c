/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Runs a fuzz target once on no bytes, and once on each file of its corpus: a unit
 * test, for which no fuzzer is needed. A target that finds a fault aborts.
 */

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);
__attribute__ ((weak)) int LLVMFuzzerInitialize (int *argc, char ***argv);

/* Returns -1 with errno if the file cannot be read.
 */
static int replay (int dir, const char *name)
{
    int fd = openat (dir, name, O_RDONLY);
    struct stat st;
    uint8_t *data = NULL;
    int rc = -1;

    // The copy has no byte too many, so that ASan sees a read past its end.
    if (fd >= 0
        && fstat (fd, &st) == 0
        && (data = malloc ((size_t)st.st_size))
        && read (fd, data, (size_t)st.st_size) == st.st_size) {
        LLVMFuzzerTestOneInput (data, (size_t)st.st_size);
        rc = 0;
    }
    free (data);
    if (fd >= 0)
        close (fd);
    return rc;
}

int main (int argc, char **argv)
{
    DIR *corpus = argc == 2 ? opendir (argv[1]) : NULL;
    struct dirent *entry;
    int count = 0;

    if (!corpus) {
        fprintf (stderr, "Usage: %s CORPUS\n", argv[0]);
        return 2;
    }
    if (LLVMFuzzerInitialize && LLVMFuzzerInitialize (&argc, &argv) != 0)
        return 1;
    LLVMFuzzerTestOneInput ((const uint8_t *)"", 0);
    while ((entry = readdir (corpus))) {
        if (*entry->d_name == '.')
            continue;
        if (replay (dirfd (corpus), entry->d_name) < 0) {
            perror (entry->d_name);
            return 1;
        }
        count++;
    }
    closedir (corpus);
    printf ("%d inputs\n", count);
    return count > 0 ? 0 : 1;
}

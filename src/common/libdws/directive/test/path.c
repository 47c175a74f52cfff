/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of path.c, fill.c, and of the other words that NNF hands on.
 */

#include "libdws/directive/directive.h"
#include "libdws/test/util.h"

#define XFS "#DW jobdw type=xfs capacity=10GiB name=scratch"
#define N63 "aaaaaaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbbbbbcccccccccccccccccccc" "dde"
#define N255 N63 N63 N63 N63 "ccc"
#define TO(path) "['" XFS "', '#DW copy_out source=$DW_JOB_scratch" \
    " destination=" path "']"
#define FROM(path) "['" XFS "', '#DW copy_out source=" path \
    " destination=/lus/out']"
#define GLOBAL(path) "'#DW container name=cc profile=pp DW_GLOBAL_aa=" path "'"

/* What a path can have: comes out as it is.
 */
static const char *const good[] = {
    TO ("/lus/aZ09._-+=@:,/\u00e9/\u6f22.\U0001f600/"),
    TO ("//lus//./..a/a../...//"),
    TO ("/lus/$USER/${USER}x/out.{{id}}"),
    TO ("/lus/$USER-$USER.{{id}}{{id}}"),
    TO ("/" N255),
    FROM ("$DW_JOB_scratch/a=b/$USER"),
    "['#DW jobdw type=gfs2 capacity=1GiB name=ab',"
    " '#DW container name=cc profile=pp DW_JOB_aa=ab"
    " DW_GLOBAL_aa=/lus/home/$USER']",
};

static void test_good (void **state)
{
    for (size_t i = 0; i < sizeof (good) / sizeof (good[0]); i++) {
        json_t *dw = J (good[i]);
        dws_error_t e = { "" };
        struct dws_directives *d = dws_directives_parse (dw, NULL, NULL, &e);
        json_t *o;

        if (!d)
            fail_msg ("%s: %s", good[i], e.text);
        o = dws_directives_encode (d);
        assert_json (o, good[i]);
        json_decref (o);
        dws_directives_destroy (d);
        json_decref (dw);
    }
}

/* dw, and what the message must name
 */
static const struct {
    const char *dw;
    const char *word;
    const char *fault;
} bad[] = {
    { TO ("/lus/out;id"), "destination '/lus/out;id'", "has ';'" },
    { TO ("/lus/out-$(date)"), "'/lus/out-$(date)'", "has '$'" },
    { TO ("/lus/`id`"), "'/lus/`id`'", "has '`'" },
    { TO ("/lus/a|b"), "'/lus/a|b'", "has '|'" },
    { TO ("/lus/a&b"), "'/lus/a&b'", "has '&'" },
    { TO ("/lus/*"), "'/lus/*'", "has '*'" },
    { TO ("/lus/a?"), "'/lus/a?'", "has '?'" },
    { TO ("/lus/[ab]"), "'/lus/[ab]'", "has '['" },
    { TO ("/lus/~u/out"), "'/lus/~u/out'", "has '~'" },
    { TO ("/lus/%s%n"), "'/lus/%s%n'", "has '%'" },
    { TO ("/lus/a>b"), "'/lus/a>b'", "has '>'" },
    { TO ("/lus/a!"), "'/lus/a!'", "has '!'" },
    { TO ("/lus/a#b"), "'/lus/a#b'", "has '#'" },
    { TO ("/lus/{a,b}"), "'/lus/{a,b}'", "has '{'" },
    { TO ("/lus/{{id.dec}}"), "'/lus/{{id.dec}}'", "has '{'" },
    { TO ("/lus/{{name}}"), "'/lus/{{name}}'", "has '{'" },
    { TO ("/lus/{{id}}}"), "'/lus/{{id}}}'", "has '}'" },
    { TO ("/lus/$USERS"), "'/lus/$USERS'", "has '$'" },
    { TO ("/lus/${HOME}"), "'/lus/${HOME}'", "has '$'" },
    { TO ("/lus/$FLUX_JOB_ID"), "'/lus/$FLUX_JOB_ID'", "has '$'" },
    { TO ("/lus/$DW_JOB_scratch"), "'/lus/$DW_JOB_scratch'", "has '$'" },
    { TO ("/lus/my\\\\out"), "destination=/lus/my\\out", "a '\\'" },
    { TO ("\\\"/lus/out\\\""), "'destination=\"/lus/out\"'",
      "quotation marks in it, which no word of a directive has: write"
      " destination=/lus/out" },
    { TO ("\\u0027/lus"), "'destination='/lus'", "write destination=/lus" },
    { TO ("/lus/\\\"a"), "'destination=/lus/\"a'", "write destination=/lus/a" },
    { TO ("~/out"), "'~/out'", "begins with '~'; it must begin with" },
    { TO ("{{id}}/x"), "'{{id}}/x'", "begins with '{{id}}'" },
    { TO ("$USER/x"), "'$USER/x'", "begins with '$USER'" },
    { TO ("../x"), "'../x'", "begins with '..'" },
    { TO ("/lus/../etc/x"), "'/lus/../etc/x'", "has '..'" },
    { TO ("/lus/.."), "'/lus/..'", "has '..'" },
    { TO ("/.."), "'/..'", "has '..'" },
    { FROM ("$DW_JOB_scratch/../../../etc/shadow"),
      "source '$DW_JOB_scratch/../../../etc/shadow'", "has '..'" },
    { FROM ("$DW_JOB_scratch;id"), "'$DW_JOB_scratch;id'", "has ';'" },
    { FROM ("$DW_JOB_$(id)"), "'$DW_JOB_$(id)'", "has '$'" },
    { FROM ("$DW_JOB_$USER"), "'$DW_JOB_$USER'", "no jobdw has the name" },
    { FROM ("${DW_JOB_scratch}/x"), "'${DW_JOB_scratch}/x'",
      "begins with '${DW_JOB_scratch}'" },
    { FROM ("$DW_GLOBAL_scratch/x"), "'$DW_GLOBAL_scratch/x'", "must begin with" },
    { TO ("/" N255 "d"), "part of 256 bytes", "255" },
    { GLOBAL ("/lus;id"), "DW_GLOBAL_aa '/lus;id'", "has ';'" },
    { GLOBAL ("/lus/../etc"), "DW_GLOBAL_aa '/lus/../etc'", "has '..'" },
    { GLOBAL ("$DW_JOB_aa"), "DW_GLOBAL_aa '$DW_JOB_aa'", "absolute" },
    // other words that NNF hands on, and those that it may
    { "'" XFS " profile=a;b'", "profile 'a;b'", "" },
    { "'" XFS " requires=site;daemon'", "requires 'site;daemon'", "has ';'" },
    { "'" XFS " requires=copy-offload,a$b'", "requires 'a$b'", "has '$'" },
    { "'" XFS " a;b=c'", "key 'a;b'", "has ';'" },
    { "'" XFS " flag$'", "key 'flag$'", "has '$'" },
    { "'" XFS " stripes=$(id)'", "stripes '$(id)'", "has '$'" },
    { "'" XFS " stripes=a/../b'", "stripes 'a/../b'", "has '..'" },
    { "'#DW container name=cc profile=pp DW_JOB_a;b=aa'", "'DW_JOB_a;b'",
      "has ';'" },
    { "'#DW container name=cc profile=pp DW_GLOBAL_Aa=/l;'", "'DW_GLOBAL_Aa=/l;'",
      "ends in ';'" },
    { "'#DW Proposal action=`id`'", "action '`id`'", "has '`'" },
};

static void test_bad (void **state)
{
    for (size_t i = 0; i < sizeof (bad) / sizeof (bad[0]); i++) {
        json_t *dw = J (bad[i].dw);
        dws_error_t e = { "" };

        errno = 0;
        if (dws_directives_parse (dw, NULL, NULL, &e))
            fail_msg ("accepted: %s", bad[i].dw);
        assert_int_equal (errno, EINVAL);
        assert_contains (e.text, bad[i].word);
        assert_contains (e.text, bad[i].fault);
        json_decref (dw);
    }
}

/* What is filled into paths: the last directive then, or "!" and the error.
 */
static const struct {
    const char *dw;
    const char *user;
    const char *id;
    const char *want;
} filled[] = {
    { TO ("/l/$USER/${USER}x.{{id}}"), "ann", "fXy",
      "#DW copy_out source=$DW_JOB_scratch destination=/l/ann/annx.fXy" },
    { TO ("/l/$USER/{{id}}"), NULL, "fXy",
      "#DW copy_out source=$DW_JOB_scratch destination=/l/$USER/fXy" },
    { TO ("/l/$USER/{{id}}"), "ann", NULL,
      "#DW copy_out source=$DW_JOB_scratch destination=/l/ann/{{id}}" },
    { FROM ("$DW_JOB_scratch/$USER"), "a.b", "1",
      "#DW copy_out source=$DW_JOB_scratch/a.b destination=/lus/out" },
    { GLOBAL ("/home/$USER"), "ann", NULL,
      "#DW container name=cc profile=pp DW_GLOBAL_aa=/home/ann" },
    { "'#DW container name=cc profile=pp flag'", "ann", "1",
      "#DW container name=cc profile=pp flag" },
    { TO ("/l/$USER"), "ann;id", "1",
      "!directive 2: destination '/l/$USER' has ';'" },
    { TO ("/l/$USER"), "a/b", "1", "!'a/b' is no part of a path" },
    { TO ("/l/$USER"), "", "1", "!'' is no part of a path" },
    { TO ("/l/$USER"), "{{id}}", "1", "!'{{id}}' is no part of a path" },
    { TO ("/l/.$USER/x"), ".", "1", "!has '..'" },
    { TO ("/l/$USER"), "..", "1", "!has '..'" },
    { TO ("/l/$USER"), N255 "x", "1", "!part of 256 bytes" },
};

static void test_filled (void **state)
{
    for (size_t i = 0; i < sizeof (filled) / sizeof (filled[0]); i++) {
        const char *want = filled[i].want;
        json_t *dw = J (filled[i].dw);
        dws_error_t e = { "" };
        struct dws_directives *d = dws_directives_parse (dw, NULL, NULL, &e);
        int rc;

        if (!d)
            fail_msg ("%s: %s", filled[i].dw, e.text);
        rc = dws_directives_fill (d, filled[i].user, filled[i].id, &e);
        if (*want == '!') {
            assert_int_equal (rc, -1);
            assert_int_equal (errno, EINVAL);
            assert_contains (e.text, want + 1);
        }
        else {
            int left = (strstr (want, "$USER") ? DWS_VARIABLE_USER : 0)
                       | (strstr (want, "{{id}}") ? DWS_VARIABLE_ID : 0);

            assert_int_equal (rc, 0);
            assert_string_equal (
                dws_directives_text (d, dws_directives_count (d) - 1), want);
            assert_int_equal (dws_directives_variables (d), left);
        }
        dws_directives_destroy (d);
        json_decref (dw);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_good),
        cmocka_unit_test (test_bad),
        cmocka_unit_test (test_filled),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

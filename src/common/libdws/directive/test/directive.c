/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of directive.c, grammar.c and structure.c.
 */

#include "libdws/directive/directive.h"
#include "libdws/test/util.h"

#define XFS "#DW jobdw type=xfs capacity=10GiB name=scratch"
#define GFS2 "#DW jobdw type=gfs2 capacity=1TB name=my-gfs2"
#define N60 "aaaaaaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbbbbbcccccccccccccccccccc"
#define N62 N60 "dd"
#define N63 N62 "e"
#define LUS "#DW persistentdw name=lus"
#define TO(path) "['" XFS "', '#DW copy_out source=$DW_JOB_scratch" \
    " destination=" path "']"

static const char *presets =
    "{'small': '" XFS "',"
    " 'pair': ['" XFS "', '" GFS2 "'],"
    " 'lines': '# two of them\\n" XFS "\\n\\n" GFS2 "\\n',"
    " 'bad': '#DW jobdw type=xfs',"
    " 'word': 'small',"
    " 'none': [],"
    " 'number': 5,"
    " 'mixed': [1]}";

/* dw, and the list that it stands for
 */
static const struct {
    const char *dw;
    const char *want;
} good[] = {
    { NULL, "[]" },
    { "null", "[]" },
    { "''", "[]" },
    { "' \\n\\t '", "[]" },
    { "[]", "[]" },
    { "['', '']", "[]" },
    { "'" XFS "'", "['" XFS "']" },
    { "['" XFS "']", "['" XFS "']" },
    // white space is squeezed
    { "'\\t#DW  jobdw\\ttype=xfs \\r\\n capacity=10GiB   name=scratch  '",
      "['" XFS "']" },
    // several in one string, on one line or on several
    { "'" XFS " " GFS2 "'", "['" XFS "', '" GFS2 "']" },
    { "'" XFS "\\n" GFS2 "\\n'", "['" XFS "', '" GFS2 "']" },
    { "['" XFS " " GFS2 "', '" LUS "']",
      "['" XFS "', '" GFS2 "', '" LUS "']" },
    // comments and blank lines
    { "'# one\\n\\n" XFS " # two " LUS "\\n  # three\\n" GFS2 "'",
      "['" XFS "', '" GFS2 "']" },
    // continuation
    { "'#DW jobdw type=xfs \\\\\\n capacity=10GiB\\\\\\n  name=scratch'",
      "['" XFS "']" },
    { "'#DW \\\\\\njobdw type=xfs capacity=10GiB name=scratch\\\\'",
      "['" XFS "']" },
    { "'" GFS2 "\\n" LUS "\\n#DW container name=my-foo profile=foo \\\\\\n"
      "DW_JOB_foo_local=my-gfs2 \\\\\\n DW_PERSISTENT_foo_pers=lus\\n'",
      "['" GFS2 "', '" LUS "', '#DW container name=my-foo profile=foo"
      " DW_JOB_foo_local=my-gfs2 DW_PERSISTENT_foo_pers=lus']" },
    // presets
    { "'small'", "['" XFS "']" },
    { "'  small\\n'", "['" XFS "']" },
    { "'pair'", "['" XFS "', '" GFS2 "']" },
    { "'lines'", "['" XFS "', '" GFS2 "']" },
    { "['small', '" GFS2 "']", "['" XFS "', '" GFS2 "']" },
    { "'small\\n" GFS2 "'", "['" XFS "', '" GFS2 "']" },
    // every command with every key
    { "'#DW jobdw name=ab capacity=1KB type=lustre profile=p1"
      " requires=copy-offload,user-container-auth'",
      "['#DW jobdw name=ab capacity=1KB type=lustre profile=p1"
      " requires=copy-offload,user-container-auth']" },
    { "'#DW create_persistent type=raw capacity=7TiB name=pp profile=x-1'",
      "['#DW create_persistent type=raw capacity=7TiB name=pp"
      " profile=x-1']" },
    { "'#DW create_persistent type=lustre name=pool profile=mgs'",
      "['#DW create_persistent type=lustre name=pool profile=mgs']" },
    { "'#DW create_persistent type=raw capacity=7TiB name=" N63 "'",
      "['#DW create_persistent type=raw capacity=7TiB name=" N63 "']" },
    { "'#DW destroy_persistent name=pp'",
      "['#DW destroy_persistent name=pp']" },
    // one that was made before there was a bound
    { "'#DW destroy_persistent name=" N63 N63 "'",
      "['#DW destroy_persistent name=" N63 N63 "']" },
    // this becomes a variable only
    { "'#DW jobdw type=xfs capacity=1GiB name=" N63 "a-'",
      "['#DW jobdw type=xfs capacity=1GiB name=" N63 "a-']" },
    { "'#DW persistentdw name=pp requires=copy-offload'",
      "['#DW persistentdw name=pp requires=copy-offload']" },
    { "['" GFS2 "', '#DW copy_in source=/p/in"
      " destination=$DW_JOB_my_gfs2/in profile=fast',"
      " '#DW copy_out source=$DW_JOB_my_gfs2 destination=/p/out']",
      "['" GFS2 "', '#DW copy_in source=/p/in"
      " destination=$DW_JOB_my_gfs2/in profile=fast',"
      " '#DW copy_out source=$DW_JOB_my_gfs2 destination=/p/out']" },
    { "['" LUS "', '#DW copy_in source=$DW_PERSISTENT_lus/a"
      " destination=/lus/b']",
      "['" LUS "', '#DW copy_in source=$DW_PERSISTENT_lus/a"
      " destination=/lus/b']" },
    { "'#DW container name=cc profile=pp DW_GLOBAL_home=/lus/home'",
      "['#DW container name=cc profile=pp DW_GLOBAL_home=/lus/home']" },
    // the same name for a job's and a persistent storage
    { "['" LUS "', '#DW jobdw type=raw capacity=1MiB name=lus']",
      "['" LUS "', '#DW jobdw type=raw capacity=1MiB name=lus']" },
    // comments are not handed on
    { "'" XFS " # caf\u00e9\u00a0\u200b; $(id) \\\\ \\t..'", "['" XFS "']" },
    // a directive may come before what it refers to
    { "['#DW copy_in source=/a destination=$DW_JOB_scratch/', '" XFS "']",
      "['#DW copy_in source=/a destination=$DW_JOB_scratch/',"
      " '" XFS "']" },
};

static void test_good (void **state)
{
    json_t *p = J (presets);

    for (size_t i = 0; i < sizeof (good) / sizeof (good[0]); i++) {
        json_t *dw = J (good[i].dw);
        dws_error_t e = { "" };
        struct dws_directives *d = dws_directives_parse (dw, p, NULL, &e);
        struct dws_directives *again;
        json_t *o;

        if (!d)
            fail_msg ("%s: %s", good[i].dw, e.text);
        o = dws_directives_encode (d);
        assert_json (o, good[i].want);
        assert_int_equal (dws_directives_warning_count (d), 0);
        dws_directives_destroy (d);

        // what comes out parses to the same, without presets
        again = dws_directives_parse (o, NULL, NULL, &e);
        assert_non_null (again);
        json_decref (o);
        o = dws_directives_encode (again);
        assert_json (o, good[i].want);
        dws_directives_destroy (again);
        json_decref (o);
        json_decref (dw);
    }
    json_decref (p);
}

/* dw, and what the message must name
 */
static const struct {
    const char *dw;
    const char *text;
    const char *text2;
} bad[] = {
    // form
    { "5", "string or a list", "" },
    { "{}", "string or a list", "" },
    { "[5]", "list entry 1", "" },
    { "'a\\u0000b'", "NUL", "" },
    { "'jobdw type=xfs'", "'jobdw type=xfs'", "neither a directive" },
    { "'#dw jobdw'", "'#dw'", "did you mean '#DW'" },
    { "'#DWjobdw'", "'#DWjobdw'", "did you mean '#DW'" },
    { "'#DW'", "directive 1", "no command" },
    { "'#DW stage_in type=file source=/a'", "unknown command 'stage_in'",
      "of DataWarp: write #DW copy_in source=PATH" },
    { "'#DW setup action=wait'", "unknown command 'setup'", "known are" },
    { "'#DW # jobdw'", "directive 1", "no command" },
    { "'" XFS " \\\\\\n" GFS2 "'", "directive 1", "new #DW" },
    { "'" XFS "\\ncapacity'", "'capacity'", "neither a directive" },
    { "'#DW \\\\\\\\'", "'\\'", "can only end a line" },
    { "'#DW persistentdw name=ab\\\\ " LUS "'", "'name=ab\\'", "end a line" },
    // presets
    { "'smal'", "'smal'", "did you mean 'small'" },
    { "'huge'", "'huge'", "small, pair" },
    { "'bad'", "directive 1", "lacks 'capacity=': add capacity=10GiB" },
    // as the documents have them
    { "'#DW jobdw type=xfs capacity=10GiB'", "directive 1",
      "jobdw lacks 'name=': add name=scratch, or another name" },
    { "'#DW jobdw name=ab capacity=1TiB'", "directive 1",
      "jobdw lacks 'type=': add type=xfs, gfs2, raw or lustre" },
    { "'#DW persistentdw'", "directive 1", "add name=scratch" },
    { "'#DW destroy_persistent'", "directive 1", "add name=NAME" },
    { "'#DW copy_in source=/lus/a'", "directive 1", "add destination=PATH" },
    { "'word'", "preset 'word'", "'small' does not begin with #DW" },
    { "'none'", "preset 'none'", "empty" },
    { "'# a comment'", "comments only", "no #DW directive" },
    { "['', '  # one', '#two']", "comments only", "no #DW directive" },
    { "'number'", "preset 'number'", "string or a list" },
    { "'mixed'", "preset 'mixed'", "entry 1" },
    // commands
    { "'#DW jobwd type=xfs'", "'jobwd'", "did you mean 'jobdw'" },
    { "'#DW JOBDW type=xfs'", "'JOBDW'", "did you mean 'jobdw'" },
    { "'#DW copyin source=/a'", "'copyin'", "did you mean 'copy_in'" },
    { "'#DW copy-out source=/a'", "'copy-out'", "'copy_out'" },
    { "'#DW persistent name=aa'", "'persistent'", "'persistentdw'" },
    { "'#DW type=xfs capacity=1GiB'", "'type=xfs'", "jobdw" },
    // keys
    { "'#DW jobdw typ=xfs capacity=1GiB name=aa'", "'typ'", "'type'" },
    { "'#DW jobdw type=xfs capcity=1GiB name=aa'",
      "'capcity'", "did you mean 'capacity'" },
    { "'#DW jobdw type=xfs Capacity=1GiB name=aa'", "'Capacity'",
      "'capacity'" },
    { "'#DW jobdw type=xfs size=1GiB name=aa'", "jobdw lacks", "capacity" },
    { "'#DW jobdw type=xfs capacity=1GiB'", "jobdw lacks", "name" },
    { "'#DW jobdw capacity=1GiB name=aa'", "jobdw lacks", "type" },
    { "'#DW jobdw type capacity=1GiB name=aa'", "'type'", "needs a value" },
    { "'#DW jobdw type= capacity=1GiB name=aa'", "'type'", "needs a value" },
    { "'" XFS " name=other'", "'name'", "twice" },
    { "'#DW destroy_persistent'", "destroy_persistent lacks", "name" },
    { "'#DW container name=cc'", "container lacks", "profile" },
    { "'#DW copy_in source=/a'", "copy_in lacks", "destination" },
    // values
    { "'#DW jobdw type=xsf capacity=1GiB name=aa'",
      "'xsf'", "did you mean 'xfs'" },
    { "'#DW jobdw type=ext4 capacity=1GiB name=aa'",
      "'ext4'", "raw, xfs, gfs2, lustre" },
    { "'#DW jobdw type=xfs capacity=10 name=aa'", "'10'", "KiB" },
    { "'#DW jobdw type=xfs capacity=1KiB..1GiB name=aa'", "'1KiB..1GiB'",
      "whole number" },
    /* what Kubernetes does not take for a name, or a label */
    { "'#DW create_persistent type=xfs capacity=1GiB name=trailing-'",
      "'trailing-'", "end in" },
    { "'#DW create_persistent type=xfs capacity=1GiB name=" N63 "a'",
      "64 characters", "63" },
    { "'#DW create_persistent type=xfs capacity=1GiB name=" N62 "-'", "-'",
      "end in" },
    // 61 characters: cut in front
    { "'#DW create_persistent type=xfs capacity=1GiB name="
      "a12345678901234567890123456789012345678901234567890123456789-'",
      "'...45678", "end in" },
    { "'#DW persistentdw name=" N63 "a'", "64 characters", "63" },
    { "'#DW persistentdw name=pp-'", "'pp-'", "end in" },
    { "'#DW destroy_persistent name=pp-'", "'pp-'", "end in" },
    { "'#DW destroy_persistent name=" N63 N63 N63 N63 "aa'", "254 characters",
      "253" },
    { "'#DW jobdw type=xfs capacity=1GiB name=aa profile=pp-'", "profile 'pp-'",
      "end in" },
    { "'#DW container name=cc profile=pp DW_GLOBAL_home_=/lus/home'",
      "'DW_GLOBAL_home_'", "end in" },
    { "'#DW container name=cc profile=pp DW_GLOBAL_" N63 "a=/lus/home'",
      "'DW_GLOBAL_aaaa",
      "63" },
    { "'#DW jobdw type=xfs capacity=GiB name=aa'", "'GiB'", "whole" },
    { "'#DW jobdw type=xfs capacity=1.5TiB name=aa'", "'1.5TiB'", "whole" },
    { "'#DW jobdw type=xfs capacity=10gib name=aa'", "'10gib'", "GiB" },
    { "'#DW jobdw type=xfs capacity=10G name=aa'", "'10G'", "GiB" },
    { "'#DW jobdw type=xfs capacity=-1GiB name=aa'", "'-1GiB'", "whole" },
    { "'#DW jobdw type=xfs capacity=0GiB name=aa'", "'0GiB'", "zero" },
    { "'#DW jobdw type=xfs capacity=000MB name=aa'", "'000MB'", "zero" },
    { "'#DW jobdw type=xfs capacity=99999999TiB name=aa'",
      "'99999999TiB'", "too large" },
    { "'#DW jobdw type=xfs capacity=99999999999999999999999KB name=aa'",
      "99999999999999999999999KB", "too large" },
    { "'#DW jobdw type=xfs capacity=1GiB name=a'", "'a'", "two or more" },
    { "'#DW jobdw type=xfs capacity=1GiB name=Aa'", "'Aa'", "lower case" },
    { "'#DW jobdw type=xfs capacity=1GiB name=1a'", "'1a'", "begin" },
    { "'#DW jobdw type=xfs capacity=1GiB name=a_b'", "'a_b'", "a-z" },
    { "'" XFS " profile=X'", "profile 'X'", "lower case" },
    { "'" XFS " requires=copy-offlaod'", "'copy-offlaod'",
      "did you mean 'copy-offload'" },
    { "'" XFS " requires=copy-offload,'", "'copy-offload,'", "commas" },
    { "'" XFS " requires=copy-offload,copy-offload'", "'copy-offload'",
      "twice" },
    // characters that are not seen, or separate words for others
    { "'#DW jobdw type=xfs\u00a0capacity=1GiB name=aa'",
      "'type=xfs<U+00A0>capacity=1GiB'", "U+00A0 NO-BREAK SPACE" },
    { "'" XFS "\\n#DW\u00a0jobdw type=xfs'", "directive 2: '#DW<U+00A0>jobdw'",
      "U+00A0" },
    { "'" XFS "\\n#DW jobdw type=xfs\u200b'", "directive 2: 'type=xfs<U+200B>'",
      "U+200B ZERO WIDTH SPACE" },
    { "'\ufeff" XFS "'", "directive 1: '<U+FEFF>#DW'", "U+FEFF BYTE ORDER MARK" },
    { "'" XFS "\u2028" GFS2 "'", "'name=scratch<U+2028>#DW'", "U+2028" },
    { "'" XFS "\u2029'", "'name=scratch<U+2029>'", "U+2029" },
    { "'" XFS "\u3000'", "'name=scratch<U+3000>'", "IDEOGRAPHIC SPACE" },
    { "'" XFS "\\u0085'", "<U+0085>", "NEXT LINE" },
    { "'" XFS "\\u000b'", "<U+000B>", "VERTICAL TAB" },
    { "'" XFS "\\f" GFS2 "'", "<U+000C>", "FORM FEED" },
    { "'#DW jobdw\\rtype=xfs'", "'jobdw<U+000D>type=xfs'", "CARRIAGE RETURN" },
    { "'" XFS "\\u001b[2J'", "<U+001B>", "ESCAPE" },
    { TO ("/lus/\u202etuo"), "'destination=/lus/<U+202E>tuo'",
      "RIGHT-TO-LEFT OVERRIDE" },
    { TO ("/lus/\ufffd"), "U+FFFD", "REPLACEMENT CHARACTER" },
    { "'small\u200b'", "'small<U+200B>'", "U+200B" },
    { "'\u00a0'", "'<U+00A0>'", "U+00A0" },
    { "'" XFS " # one\u2028" GFS2 "'", "comment", "U+2028" },
    { "'# one\\r" XFS "'", "comment", "U+000D" },
    { "'#\u200bDW jobdw'", "'#<U+200B>DW'", "U+200B" },
    // blanks at '='
    { "'#DW jobdw type = xfs capacity = 1GiB name = aa'", "blank at the '='",
      "'type=xfs'" },
    { "'#DW jobdw type= xfs capacity=1GiB name=aa'", "blank at the '='",
      "'type=xfs'" },
    { "'#DW jobdw type=xfs capacity =1GiB name=aa'", "blank at the '='",
      "'capacity=1GiB'" },
    { "'#DW jobdw type= capacity=1GiB name=aa'", "'type'", "needs a value" },
    // what a shell, Slurm and DataWarp have, and what to write instead
    { "'#DW jobdw type=\\\"xfs\\\" capacity=1GiB name=aa'", "'type=\"xfs\"'",
      "quotation marks in it, which no word of a directive has: write type=xfs" },
    { "'#DW jobdw type=\u201cxfs\u201d capacity=1GiB name=aa'", "quotation marks",
      "write type=xfs" },
    { "'#DW jobdw \\\"type=xfs\\\" capacity=1GiB name=aa'", "quotation marks",
      "write type=xfs" },
    { "'\\\"" XFS "\\\"'", "does not begin with '#DW'", "leave out" },
    { "'" XFS ";\\n" GFS2 "'", "'name=scratch;' ends in ';'", "a new line or '#DW'" },
    { "'" XFS " ; " GFS2 "'", "';' ends in ';'", "leave that out" },
    { "'" XFS "\\\\n" GFS2 "'", "'name=scratch\\n#DW'", "is no new line" },
    { "'#DW jobdw,type=xfs,capacity=1GiB,name=aa'", "blanks separate words",
      "write '#DW jobdw ...'" },
    { "'#DW type=xfs capacity=1GiB name=aa'", "a command comes first",
      "write '#DW jobdw type=xfs ...'" },
    { "'#DW jobdw type:xfs capacity=1GiB name=aa'", "'type:xfs' has ':' for '='",
      "write type=xfs" },
    { "'#DW jobdw type=xfs capacity=10 GiB name=aa'", "a blank in 'capacity=10 GiB'",
      "write capacity=10GiB" },
    { "'#DW jobdw type=xfs capacity=10 G name=aa'", "a blank in 'capacity=10 G'",
      "write capacity=10GiB" },
    { "'#DW jobdw type=xfs capacity=10G name=aa'", "'10G'", "write capacity=10GiB" },
    { "'#DW jobdw type=xfs capacity=10gb name=aa'", "'10gb'", "write capacity=10GB" },
    { "'#DW jobdw type=xfs capacity=1.5TiB name=aa'", "'1.5TiB'",
      "write capacity=1536GiB" },
    { "'#DW jobdw type=xfs capacity=0,5TB name=aa'", "'0,5TB'",
      "write capacity=500GB" },
    { "'#DW jobdw type=xfs capacity=2.0TiB name=aa'", "'2.0TiB'",
      "write capacity=2TiB" },
    { "'#DW jobdw type=xfs capacity=0.1KiB name=aa'", "'0.1KiB'",
      "write capacity=1KiB" },
    { "'#DW jobdw type=xfs capacity=100 name=aa'", "'100'",
      "write capacity=100GiB, or with another unit" },
    { "'#DW jobdw type=xfs capacity=1GiB name=my_Fs'", "'my_Fs'",
      "write name=my-fs" },
    { "'#DW jobdw type=xfs capacity=1GiB name=my\u2013fs'", "'my\u2013fs'",
      "write name=my-fs" },
    { "'#DW jobdw type=scratch access_mode=striped capacity=2TiB name=aa'",
      "'access_mode' is of DataWarp", "leave it out" },
    { "'#DW jobdw type=scratch capacity=2TiB name=aa'",
      "type 'scratch' is of DataWarp", "write type=lustre" },
    { "'#DW jobdw type=cache pfs=/lus/a capacity=2TiB name=aa'",
      "'pfs' is of DataWarp", "#DW copy_in" },
    { "'#DW jobdw type=cache capacity=2TiB name=aa'", "'cache' is of DataWarp",
      "#DW copy_out" },
    { "'#DW jobdw type=xfs access_mode=striped capacity=1GiB name=aa'",
      "key 'access_mode' is of DataWarp", "leave it out" },
    { "'#DW stage_out type=file source=/a'", "unknown command 'stage_out'",
      "write #DW copy_out" },
    { "'#DW swap 10GiB'", "unknown command 'swap'", "no swap space" },
    { "'#BB create_persistent name=aa'", "'#BB' is of Slurm",
      "begins with '#DW'" },
    { "'" XFS "\\n#BB destroy_persistent name=aa'", "'#BB' is of Slurm",
      "begins with '#DW'" },
    { TO ("${DW_JOB_scratch}/x"), "'${DW_JOB_scratch}'", "write $DW_JOB_scratch" },
    // structure
    { "['" XFS "', '#DW jobdw type=raw capacity=1MB name=scratch']",
      "directive 2: name 'scratch'", "directive 1" },
    { "'" LUS "\\n" LUS "'",
      "directive 2: name 'lus'", "is that of directive 1 already" },
    { "['#DW create_persistent type=xfs capacity=1GB name=pp', '" XFS "']",
      "directive 1: create_persistent", "only directive" },
    { "['" XFS "', '#DW destroy_persistent name=pp']",
      "directive 2: destroy_persistent", "only directive" },
    { "['" XFS "', '#DW copy_in source=/a destination=/b']",
      "neither source '/a' nor destination '/b'", "$DW_JOB_" },
    { "['" XFS "', '#DW copy_in source=/a destination=$DW_JOB_other/']",
      "directive 2: destination '$DW_JOB_other/'", "no jobdw" },
    { "['" XFS "', '#DW copy_in source=/a"
      " destination=$DW_PERSISTENT_scratch/']",
      "no persistentdw", "'scratch'" },
    { "['" GFS2 "', '#DW copy_in source=/a destination=$DW_JOB_my-gfs2/']",
      "$DW_JOB_my-gfs2", "'_' for '-'" },
    { "['" XFS "', '#DW copy_out source=$DW_JOB_scratchy destination=/a']",
      "source '$DW_JOB_scratchy'", "no jobdw" },
    { "['" XFS "', '#DW copy_out source=scratch/x destination=/a']",
      "source 'scratch/x'", "must begin with" },
    { "['" XFS "', '#DW copy_out source=$HOME/x destination=/a']",
      "'$HOME/x'", "must begin with" },
    { "['#DW jobdw type=raw capacity=1GiB name=rr',"
      " '#DW copy_in source=/a destination=$DW_JOB_rr/']",
      "$DW_JOB_rr", "raw" },
    { "['#DW container name=cc profile=pp', '" XFS "']",
      "directive 2: jobdw must come before the container", "directive 1" },
    { "['" GFS2 "', '#DW container name=cc profile=pp DW_JOB_aa=other']",
      "DW_JOB_aa 'other'", "no jobdw" },
    { "['" GFS2 "',"
      " '#DW container name=cc profile=pp DW_PERSISTENT_aa=my-gfs2']",
      "DW_PERSISTENT_aa 'my-gfs2'", "no persistentdw" },
    { "['" XFS "', '#DW container name=cc profile=pp DW_JOB_aa=scratch']",
      "'scratch'", "xfs" },
    { "'#DW container name=cc profile=pp DW_JOB_aa='", "'DW_JOB_aa'",
      "needs a value" },
    { "'#DW container name=cc profile=pp DW_JOB_aa'", "'DW_JOB_aa'",
      "needs a value" },
    { "'#DW container name=cc profile=pp DW_GLOBAL_aa=home'", "'home'",
      "absolute" },
    { "['#DW container name=cc profile=pp', '#DW container name=dd"
      " profile=pp']", "directive 2: a job can have one container", "1" },
};

static void test_bad (void **state)
{
    json_t *p = J (presets);

    for (size_t i = 0; i < sizeof (bad) / sizeof (bad[0]); i++) {
        json_t *dw = J (bad[i].dw);
        dws_error_t e = { "" };

        errno = 0;
        if (dws_directives_parse (dw, p, NULL, &e))
            fail_msg ("accepted: %s", bad[i].dw);
        assert_int_equal (errno, EINVAL);
        assert_contains (e.text, bad[i].text);
        assert_contains (e.text, bad[i].text2);
        assert_null (dws_directives_parse (dw, p, NULL, NULL));
        json_decref (dw);
    }
    json_decref (p);
}

/* What would be another name is not proposed.
 */
static void test_no_hint (void **state)
{
    static const char *const names[] = {
        "my\u2016fs", "my\u2014\u2014", "my\u9c7cfs", "my\u00e9fs", "my/fs", "\u2013fs",
        "7fs", "M",
    };

    for (size_t i = 0; i < sizeof (names) / sizeof (names[0]); i++) {
        json_t *dw = json_sprintf ("#DW jobdw type=xfs capacity=1GiB name=%s", names[i]);
        dws_error_t e = { "" };

        assert_null (dws_directives_parse (dw, NULL, NULL, &e));
        assert_contains (e.text, names[i]);
        if (strstr (e.text, "write name="))
            fail_msg ("%s: %s", names[i], e.text);
        json_decref (dw);
    }
}

/* What only the cluster can judge is passed on.
 */
static void test_warn (void **state)
{
    static const struct {
        const char *dw;
        const char *word;
    } table[] = {
        { "'#DW Proposal action=wait'", "'Proposal'" },
        { "'#DW Teardown action=error message=x severity=Fatal'",
          "'Teardown'" },
        { "'" XFS " stripe-width=3'", "'stripe-width'" },
        { "'" XFS " flag'", "'flag'" },
        { "'" XFS " requires=site-daemon'", "'site-daemon'" },
        // the beginning of a known word, and yet the site's own
        { "'" XFS " requires=copy'", "'copy'" },
        { "['" GFS2 "', '#DW container name=my-foo profile=foo"
          " DW_JOB_foo-local=my-gfs2']",
          "'DW_JOB_foo-local'" },
    };

    for (size_t i = 0; i < sizeof (table) / sizeof (table[0]); i++) {
        json_t *dw = J (table[i].dw);
        dws_error_t e = { "" };
        struct dws_directives *d = dws_directives_parse (dw, NULL, NULL, &e);

        if (!d)
            fail_msg ("%s: %s", table[i].dw, e.text);
        assert_int_equal (dws_directives_warning_count (d), 1);
        assert_contains (dws_directives_warning (d, 0), table[i].word);
        assert_null (dws_directives_warning (d, 1));
        dws_directives_destroy (d);
        json_decref (dw);
    }
}

static void test_access (void **state)
{
    json_t *dw = J ("['" XFS " flag', '" LUS "']");
    struct dws_directives *d = dws_directives_parse (dw, NULL, NULL, NULL);

    assert_non_null (d);
    assert_int_equal (dws_directives_count (d), 2);
    assert_string_equal (dws_directives_command (d, 0), "jobdw");
    assert_string_equal (dws_directives_command (d, 1), "persistentdw");
    assert_string_equal (dws_directives_text (d, 1), LUS);
    assert_string_equal (dws_directives_arg (d, 0, "capacity"), "10GiB");
    assert_string_equal (dws_directives_arg (d, 0, "flag"), "");
    assert_null (dws_directives_arg (d, 0, "profile"));
    assert_string_equal (dws_directives_key (d, 0, 0), "type");
    assert_string_equal (dws_directives_key (d, 0, 3), "flag");
    assert_null (dws_directives_key (d, 0, 4));
    assert_null (dws_directives_text (d, 2));
    assert_null (dws_directives_command (d, 2));
    assert_null (dws_directives_arg (d, 2, "name"));
    assert_null (dws_directives_key (d, 2, 0));
    assert_int_equal (dws_directives_line (d, 0), 1);
    assert_int_equal (dws_directives_line (d, 1), 2);
    assert_int_equal (dws_directives_line (d, 2), 0);
    dws_directives_destroy (d);
    dws_directives_destroy (NULL);
    json_decref (dw);
}

/* A word of any length must not hurt.
 */
static void test_long (void **state)
{
    size_t n = 100000;
    char *s = malloc (n + 1);
    json_t *dw;
    dws_error_t e;

    assert_non_null (s);
    memset (s, 'a', n);
    s[n] = '\0';
    memcpy (s, "#DW ", 4);
    dw = json_string (s);
    dws_directives_destroy (dws_directives_parse (dw, NULL, NULL, &e));
    json_decref (dw);

    memcpy (s, "#DW jobdw ", 10);
    dw = json_string (s);
    assert_null (dws_directives_parse (dw, NULL, NULL, &e));
    assert_contains (e.text, "lacks");
    json_decref (dw);
    free (s);
}

/* An array of 'n' times the same text.
 */
static json_t *repeated (const char *text, int n)
{
    json_t *dw = json_array ();

    for (int i = 0; i < n; i++)
        assert_int_equal (json_array_append_new (dw, json_string (text)), 0);
    return dw;
}

static void refused (json_t *dw, const struct dws_directive_limits *limits,
                     const char *text)
{
    dws_error_t e;

    errno = 0;
    assert_null (dws_directives_parse (dw, NULL, limits, &e));
    assert_int_equal (errno, EINVAL);
    if (!strstr (e.text, text))
        fail_msg ("'%s' is not in '%s'", text, e.text);
    json_decref (dw);
}

static void test_limits (void **state)
{
    static const char copy[] = "#DW copy_in source=/a destination=$DW_JOB_a";
    struct dws_directive_limits few = { .bytes = 1000, .count = 2 };
    json_t *dw = repeated ("#DW jobdw type=raw capacity=1GiB name=ab", 1);
    struct dws_directives *d;
    char words[2 * 70 + 64] = "#DW jobdw";
    char *text;

    assert_non_null (d = dws_directives_parse (dw, NULL, &few, NULL));
    dws_directives_destroy (d);
    json_decref (dw);
    refused (repeated (copy, 3), &few, "more than 2 directives");
    refused (repeated (copy, 64 + 1), &dws_directive_limits_default,
             "more than 64 directives");
    assert_non_null (text = calloc (1, 70000));
    memset (text, ' ', 65537);
    refused (json_string (text), &dws_directive_limits_default,
             "more than 65536 bytes");
    text[40000] = '\0';
    refused (repeated (text, 2), &dws_directive_limits_default,
             "more than 65536 bytes");
    free (text);
    /* without a byte of text they cost time as well */
    refused (repeated ("", 1001), &few, "more than 1000 bytes");
    refused (repeated (copy, 2000), NULL, "more than 1024 directives");
    for (int i = 0; i < 70; i++)
        strcat (words, " a");
    refused (json_string (words), NULL, "more than 64 words");
    refused (json_string ("#DW jobdw type=raw capacity=1GiB name=ab requires="
                          "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q"),
             NULL, "more than 16 words");
}

/* What is wrong is quoted in part: the parts are whole characters.
 */
static void test_quotes (void **state)
{
    for (int shift = 0; shift < 4; shift++) {
        static const char *const shifts[] = { "", "x", "xy", "xyz" };
        char text[200] = "#DW jobdw type=";
        dws_error_t e;
        json_t *dw;
        json_t *note;

        strcat (text, shifts[shift]);
        for (int i = 0; i < 40; i++)
            strcat (text, i % 2 ? "\u20ac" : "\u00e9");
        strcat (text, " capacity=1GiB name=ab");
        assert_non_null (dw = json_string (text));
        assert_null (dws_directives_parse (dw, NULL, NULL, &e));
        assert_non_null (note = json_string (e.text));
        assert_non_null (strstr (e.text, "is not one of"));
        json_decref (note);
        json_decref (dw);
    }
}

/* 'line' is where the fault is, 'other' that of what it does not agree with.
 */
static const struct {
    const char *dw;
    size_t line;
    size_t other;
} places[] = {
    { "'" XFS "\\n" GFS2 "'", 0, 0 },
    { "'# nothing'", 0, 0 },
    { "'" XFS "\\n\\n#DW jobwd'", 3, 0 },
    { "'" XFS "\\n#dw jobdw'", 2, 0 },
    { "['# one\\n# two\\n', '', '" XFS "', '#DW\\n']", 4, 0 },
    // in a directive of several lines, that of the word
    { "'#DW jobdw type=xfs \\\\\\n name=aa \\\\\\n capacity=1G'", 3, 0 },
    { "'#DW jobdw type=xfs\\n name=aa\\n zz=1 type=raw'", 3, 0 },
    { "'\\n#DW jobdw type=xfs\\n name=aa'", 2, 0 },
    // a preset has the line of its name
    { "'pair\\n#DW jobwd'", 2, 0 },
    { "'\\nbad\\n" XFS "'", 2, 0 },
    { "'" GFS2 "\\npair\\n'", 2, 1 },
    { "'" XFS "\\n" GFS2 "\\n\\n" XFS "'", 4, 1 },
    { "'#DW destroy_persistent name=pp\\n\\n" XFS "'", 1, 3 },
    { "'" XFS "\\n#DW destroy_persistent name=pp'", 2, 1 },
    { "'" XFS "\\n#DW copy_in source=/a destination=$DW_JOB_x'", 2, 0 },
};

static void test_where (void **state)
{
    json_t *p = J (presets);

    for (size_t i = 0; i < sizeof (places) / sizeof (places[0]); i++) {
        json_t *dw = J (places[i].dw);
        struct dws_directive_where where = { 99, 99 };
        dws_error_t error;

        dws_directives_destroy (
            dws_directives_parse_where (dw, p, NULL, &where, &error));
        if (where.line != places[i].line || where.other != places[i].other)
            fail_msg ("%s: lines %zu, %zu", places[i].dw, where.line,
                      where.other);
        json_decref (dw);
    }
    json_decref (p);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_good),
        cmocka_unit_test (test_bad),
        cmocka_unit_test (test_no_hint),
        cmocka_unit_test (test_warn),
        cmocka_unit_test (test_access),
        cmocka_unit_test (test_long),
        cmocka_unit_test (test_limits),
        cmocka_unit_test (test_quotes),
        cmocka_unit_test (test_where),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Tests of skim.c.
 */

#include <errno.h>
#include <stdlib.h>

#include "libdws/test/util.h"
#include "libdws/util/skim.h"

/* Exactly as long as it is, for ASan to see what is read beyond its end.
 */
static int skim_text (const char *text, struct dws_skim *skim)
{
    size_t size = strlen (text);
    char *copy = malloc (size + 1);
    int rc;

    assert_non_null (copy);
    copy = realloc (copy, size ? size : 1);
    memcpy (copy, text, size);
    errno = 0;
    rc = dws_skim (copy, size, skim);
    free (copy);
    return rc;
}

static void check_span (const char *text, struct dws_span span,
                        const char *want)
{
    assert_int_equal (span.size, strlen (want));
    assert_memory_equal (text + span.at, want, span.size);
}

static void test_parts (void **state)
{
    const char *text =
        "{ \"kind\": \"Workflow\", \"metadata\": {\"name\":\"a\", "
        "\"namespace\":\"default\",\"uid\":\"u-1\",\"resourceVersion\":\"17\","
        "\"deletionTimestamp\":\"2026\",\"labels\":{\"name\":\"no\"}},"
        "\"spec\":{\"name\":\"no\",\"x\":[1,-2.5e+3,0,{},[],true,false,null],"
        "\"y\":\"\\u00e9 \\\"}\\n\"}} \n";
    struct dws_skim skim;

    assert_int_equal (skim_text (text, &skim), 0);
    check_span (text, skim.kind, "Workflow");
    check_span (text, skim.name, "a");
    check_span (text, skim.namespace, "default");
    check_span (text, skim.uid, "u-1");
    check_span (text, skim.version, "17");
    check_span (text, skim.deleted, "2026");
    assert_int_equal (skim.managed.size, 0);
}

static void test_what_is_not_there (void **state)
{
    struct dws_skim skim;

    assert_int_equal (skim_text ("{}", &skim), 0);
    assert_int_equal (skim.name.size, 0);
    assert_int_equal (skim_text ("{\"metadata\":{},\"x\":1}", &skim), 0);
    assert_int_equal (skim_text ("{\"x\":\"\\u0001\\uD83d\\uDe00\\ud7ff\\ue000\"}",
                                 &skim), 0);
    assert_int_equal (skim.name.size + skim.managed.size, 0);
}

static void test_utf8 (void **state)
{
    const char *text = "{\"x\":\"\x7f \xc2\x80 \xdf\xbf \xe0\xa0\x80 \xed\x9f\xbf"
                       " \xef\xbf\xbf \xf0\x90\x80\x80 \xf4\x8f\xbf\xbf\","
                       "\"metadata\":{\"name\":\"\xc3\xa9\"}}";
    struct dws_skim skim;

    assert_int_equal (skim_text (text, &skim), 0);
    check_span (text, skim.name, "\xc3\xa9");
}

/* What is left is JSON, whatever is before and after.
 */
static void test_managed_fields (void **state)
{
    static const char *const texts[][2] = {
        { "{\"metadata\":{\"managedFields\":[{\"a\":\"}\"}]}}",
          "{\"metadata\":{}}" },
        { "{\"metadata\":{\"managedFields\":[] , \"name\":\"a\"}}",
          "{\"metadata\":{ \"name\":\"a\"}}" },
        { "{\"metadata\":{\"name\":\"a\" , \"managedFields\":null }}",
          "{\"metadata\":{\"name\":\"a\" }}" },
        { "{\"metadata\":{\"name\":\"a\",\"managedFields\":[],\"uid\":\"u\"}}",
          "{\"metadata\":{\"name\":\"a\",\"uid\":\"u\"}}" },
        // kube-apiserver 1.34: values are keys
        { "{\"metadata\":{\"managedFields\":[{\"fieldsType\":\"FieldsV1\",\"fieldsV1\":"
          "{\"f:metadata\":{\"f:finalizers\":{\".\":{},\"v:\\\"a.io/w\\\"\":{}},"
          "\"f:ownerReferences\":{\"k:{\\\"uid\\\":\\\"5\\\"}\":{}}}}}],"
          "\"name\":\"a\"}}",
          "{\"metadata\":{\"name\":\"a\"}}" },
    };

    for (size_t i = 0; i < sizeof (texts) / sizeof (texts[0]); i++) {
        const char *text = texts[i][0];
        struct dws_skim skim;
        char left[256];

        assert_int_equal (skim_text (text, &skim), 0);
        snprintf (left, sizeof (left), "%.*s%s", (int)skim.managed.at, text,
                  text + skim.managed.at + skim.managed.size);
        assert_string_equal (left, texts[i][1]);
    }
}

static void test_refusals (void **state)
{
    static const char *const texts[] = {
        "", "[]", "\"x\"", "{", "{}x", "{} {}", "{\"a\"}", "{\"a\":}",
        "{\"a\":1,}", "{,}", "{\"a\":[1,]}", "{\"a\":[1 2]}", "{\"a\":01}",
        "{\"a\":-}", "{\"a\":1.}", "{\"a\":1e}", "{\"a\":tru}", "{\"a\":nul}",
        "{\"a\":\"\t\"}", "{\"a\":\"\\x\"}", "{\"a\":\"\\u12g4\"}",
        "{\"a\":\"", "{\"a\":\"\\", "{\"a\":\"\\u1", "{a:1}", "{'a':1}",
        "{\"a\\u0062\":1}",
        "{\"a\":\"\\u0000\"}", "{\"a\":\"\\ud800\"}",
        "{\"a\":\"\\udc00\"}", "{\"a\":\"\\ud83dx\"}",
        "{\"a\":\"\\uD83D\\n\"}", "{\"a\":\"\\ud83d\\u0041\"}",
        "{\"a\":\"\\ud83d\\ud83d\"}", "{\"a\":\"\\ud83d\\ude0\"}",
        "{\"a\":\"\xc3\"}", "{\"a\":\"\x80\"}", "{\"a\":\"\xc1\xbf\"}",
        "{\"a\":\"\xe0\x9f\xbf\"}", "{\"a\":\"\xed\xa0\x80\"}",
        "{\"a\":\"\xf0\x8f\xbf\xbf\"}", "{\"a\":\"\xf4\x90\x80\x80\"}",
        "{\"a\":\"\xf5\x80\x80\x80\"}", "{\"a\":\"\xe2\x80\"}",
        "{\"kind\":7}", "{\"kind\":\"a\\u0062\"}", "{\"metadata\":[]}",
        "{\"metadata\":null}", "{\"metadata\":{\"name\":7}}",
        "{\"metadata\":{\"n\\u0061me\":\"a\"}}", "{\"x\":{\"\\u0000\":1}}",
        "{\"metadata\":{\"name\":\"\"}}",
        "{\"metadata\":{\"name\":\"a\",\"name\":\"b\"}}",
        "{\"metadata\":{\"name\":\"a\"},\"metadata\":{}}",
        "{\"metadata\":{\"managedFields\":[],\"managedFields\":[]}}",
        "{\"metadata\":{\"managedFields\":[}}",
    };

    for (size_t i = 0; i < sizeof (texts) / sizeof (texts[0]); i++) {
        struct dws_skim skim;

        if (skim_text (texts[i], &skim) == 0)
            fail_msg ("taken: %s", texts[i]);
        assert_int_equal (errno, EINVAL);
    }
}

/* However much of an object has come, it is read no further.
 */
static void test_cut_off (void **state)
{
    const char *text =
        "{\"kind\":\"K\",\"metadata\":{\"managedFields\":[{\"a\":[-1.5e3]}],"
        "\"name\":\"a\"},\"x\":\"\\u0041\",\"y\":true}";
    struct dws_skim skim;

    for (size_t n = 0; n < strlen (text); n++) {
        char *part = strndup (text, n);

        assert_int_equal (skim_text (part, &skim), -1);
        free (part);
    }
    assert_int_equal (skim_text (text, &skim), 0);
}

static void test_depth (void **state)
{
    char text[4096] = "{\"a\":";
    struct dws_skim skim;

    memset (text + 5, '[', 4000);
    assert_int_equal (skim_text (text, &skim), -1);
}

/* Exactly as long as it is, too.
 */
static size_t skim_events (const char *text, size_t size,
                           struct dws_event *events, size_t max, size_t *used)
{
    char *copy = malloc (size ? size : 1);
    size_t count;

    assert_non_null (copy);
    memcpy (copy, text, size);
    count = dws_skim_events (copy, size, events, max, used);
    free (copy);
    return count;
}

static void test_events (void **state)
{
    const char *text =
        "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\"}}}\n"
        "\n \r\n"
        " {\"object\": {\"kind\":\"K\"} , \"type\": \"BOOKMARK\"} \r\n"
        "{\"type\":\"MODIFIED\",\"object\":{}}\n"
        "{\"type\":\"DELETED\",\"object\":{}}\n"
        "{\"type\":\"ADD";
    struct dws_event events[5];
    size_t used;

    assert_int_equal (skim_events (text, strlen (text), events, 5, &used), 4);
    assert_string_equal (text + used, "{\"type\":\"ADD");
    assert_int_equal (events[0].type, DWS_EVENT_ADDED);
    check_span (text, events[0].object, "{\"metadata\":{\"name\":\"a\"}}");
    check_span (text, events[0].skim.name, "a");
    assert_int_equal (events[1].type, DWS_EVENT_BOOKMARK);
    check_span (text, events[1].object, "{\"kind\":\"K\"}");
    check_span (text, events[1].skim.kind, "K");
    assert_int_equal (events[2].type, DWS_EVENT_MODIFIED);
    assert_int_equal (events[3].type, DWS_EVENT_DELETED);
    /* No more than there is room for. */
    assert_int_equal (skim_events (text, strlen (text), events, 1, &used), 1);
    assert_int_equal (used, strchr (text, '\n') + 1 - text);
    assert_int_equal (skim_events (text, strlen (text), events, 0, &used), 0);
    assert_int_equal (used, 0);
}

/* These have to be decoded, or are none.
 */
static void test_other_lines (void **state)
{
    static const char *const lines[] = {
        "{}", "[]", "x", "{\"type\":\"ADDED\"}", "{\"object\":{}}",
        "{\"type\":\"ERROR\",\"object\":{}}", "{\"type\":1,\"object\":{}}",
        "{\"type\":\"ADDED\",\"object\":null}",
        "{\"type\":\"ADDED\",\"object\":{},\"x\":1}",
        "{\"type\":\"ADDED\",\"object\":{}}x",
        "{\"type\":\"ADDED\",\"type\":\"ADDED\",\"object\":{}}",
        "{\"type\":\"ADDED\",\"object\":{},\"object\":{}}",
        "{\"type\":\"\\u0041DDED\",\"object\":{}}",
        "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"\\n\"}}}",
        "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"\xff\"}}}",
    };

    for (size_t i = 0; i < sizeof (lines) / sizeof (lines[0]); i++) {
        struct dws_event event;
        char text[256];
        size_t used;

        snprintf (text, sizeof (text), " %s\n", lines[i]);
        assert_int_equal (skim_events (text, strlen (text), &event, 1, &used), 1);
        assert_int_equal (used, strlen (text));
        if (event.type != DWS_EVENT_OTHER)
            fail_msg ("taken: %s", lines[i]);
        check_span (text, event.object, lines[i]);
        assert_int_equal (event.skim.name.size, 0);
    }
}

/* However a line is broken, it is one line, and what follows it is read.
 */
static void test_broken_lines (void **state)
{
    const char *good = "{\"type\":\"ADDED\",\"object\":{\"metadata\":"
                       "{\"name\":\"a\",\"uid\":\"\xc3\xa9\"},\"x\":[1,\"\\n\"]}}";
    static const char with[] = "\"\\{}[],:\x01\x80\xc3z1 ";
    size_t len = strlen (good);

    for (size_t i = 0; i < len; i++) {
        for (size_t j = 0; j < sizeof (with); j++) {
            struct dws_event events[2];
            char text[512];
            size_t used;

            memcpy (text, good, len);
            text[i] = with[j];
            snprintf (text + len, sizeof (text) - len, "\n%s\n", good);
            assert_int_equal (skim_events (text, 2 * len + 2, events, 2, &used), 2);
            assert_int_equal (used, 2 * len + 2);
            assert_int_equal (events[1].type, DWS_EVENT_ADDED);
            assert_true (events[0].object.at + events[0].object.size <= len);
        }
    }
}

/* What is left of lines of the form "TYPE NAME UID [VERSION]", in the same form with
 * the version in the place of the uid. Without one it is the line's number.
 */
static void check_newest (const char *const lines[], const char *want)
{
    static const char *const names[] = { "?", "A", "M", "D", "B" };
    struct dws_event events[32];
    char text[4096] = "";
    char left[256] = "";
    size_t count;
    size_t used;

    for (size_t i = 0; lines[i]; i++) {
        char type;
        char name;
        char uid;
        char version[24];
        size_t len = strlen (text);

        snprintf (version, sizeof (version), "%zu", i);
        assert_true (sscanf (lines[i], "%c%c%c %23s", &type, &name, &uid,
                             version) >= 3);
        snprintf (text + len, sizeof (text) - len,
                  "{\"type\":\"%s\",\"object\":{\"metadata\":{\"name\":\"%c\","
                  "\"uid\":\"%c\",\"resourceVersion\":\"%s\"}}}\n",
                  type == 'A' ? "ADDED"
                  : type == 'M' ? "MODIFIED"
                  : type == 'D' ? "DELETED"
                  : type == 'B' ? "BOOKMARK" : "ERROR",
                  name, uid, version);
    }
    count = dws_skim_events (text, strlen (text), events, 32, &used);
    count = dws_events_newest (text, events, count);
    for (size_t i = 0; i < count; i++) {
        size_t len = strlen (left);

        snprintf (left + len, sizeof (left) - len, "%s%.*s%.*s ",
                  names[events[i].type],
                  (int)events[i].skim.name.size, text + events[i].skim.name.at,
                  (int)events[i].skim.version.size,
                  text + events[i].skim.version.at);
    }
    assert_string_equal (left, want);
}

static void test_newest (void **state)
{
    check_newest ((const char *[]){ NULL }, "");
    check_newest ((const char *[]){ "Ma1", NULL }, "Ma0 ");
    check_newest ((const char *[]){ "Ma1", "Mb1", "Ma1", "Ma1", NULL },
                  "Mb1 Ma3 ");
    check_newest ((const char *[]){ "Aa1", "Ma1", "Ma1", NULL }, "Aa2 ");
    /* The end of an object is told, and what was before. */
    check_newest ((const char *[]){ "Ma1", "Ma1", "Da1", NULL }, "Ma1 Da2 ");
    check_newest ((const char *[]){ "Da1", "Aa2", "Ma2", NULL }, "Da0 Aa2 ");
    check_newest ((const char *[]){ "Da1", "Da1", "Aa1", "Aa1", NULL },
                  "Da0 Da1 Aa2 Aa3 ");
    check_newest ((const char *[]){ "Da1", "Ma1", NULL }, "Da0 Ma1 ");
    /* Another one of that name. */
    check_newest ((const char *[]){ "Ma1", "Ma2", "Ma2", NULL }, "Ma0 Ma2 ");
    /* Nothing is left out before an error, which may be one of many. */
    check_newest ((const char *[]){ "Ma1", "Ma1", "Ea1", "Ma1", "Ma1", NULL },
                  "Ma0 Ma1 ? Ma4 ");
    /* Nothing is left out for what is older. */
    check_newest ((const char *[]){ "Ma1 7", "Ma1 6", NULL }, "Ma7 Ma6 ");
    check_newest ((const char *[]){ "Aa1 10", "Ma1 9", "Ma1 11", NULL }, "Aa11 ");
    check_newest ((const char *[]){ "Ma1 x", "Ma1 9", "Ma1 y", NULL }, "May ");
    /* Bookmarks stay where they are. */
    check_newest ((const char *[]){ "Ma1", "Ba1", "Ma1", "Ba1", NULL },
                  "Ba1 Ma2 Ba3 ");
}

/* Many objects, more than one in a slot of the table.
 */
static void test_newest_of_many (void **state)
{
    enum { OBJECTS = 500, EACH = 4 };
    char *text = calloc (OBJECTS * EACH, 96);
    struct dws_event *events = calloc (OBJECTS * EACH, sizeof (*events));
    char *p = text;
    size_t count;
    size_t used;

    assert_true (text && events);
    for (int i = 0; i < OBJECTS * EACH; i++)
        p += sprintf (p, "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":"
                      "{\"name\":\"job-%d\",\"namespace\":\"n%d\"}}}\n",
                      i % OBJECTS / 2, i % 2);
    count = dws_skim_events (text, p - text, events, OBJECTS * EACH, &used);
    assert_int_equal (count, OBJECTS * EACH);
    assert_int_equal (dws_events_newest (text, events, count), OBJECTS);
    for (int i = 0; i < OBJECTS; i++) {
        char want[16];

        snprintf (want, sizeof (want), "job-%d", i / 2);
        check_span (text, events[i].skim.name, want);
    }
    free (events);
    free (text);
}

static int skim_list (const char *text, struct dws_list *list,
                      struct dws_item *items, size_t max)
{
    size_t size = strlen (text);
    char *copy = malloc (size ? size : 1);
    int rc;

    assert_non_null (copy);
    memcpy (copy, text, size);
    errno = 0;
    rc = dws_skim_list (copy, size, list, items, max);
    free (copy);
    return rc;
}

static void test_list (void **state)
{
    const char *text =
        "{\"kind\":\"WorkflowList\",\"metadata\":{\"continue\":\"c\","
        "\"resourceVersion\":\"9\",\"remainingItemCount\":7},\"items\": ["
        "{\"metadata\":{\"name\":\"a\",\"managedFields\":[]}} , {\"x\":[]}]}\n";
    struct dws_item items[2];
    struct dws_list list;

    assert_int_equal (skim_list (text, &list, items, 2), 0);
    assert_int_equal (list.count, 2);
    check_span (text, list.version, "9");
    check_span (text, list.more, "c");
    check_span (text, items[0].object,
                "{\"metadata\":{\"name\":\"a\",\"managedFields\":[]}}");
    check_span (text, items[0].skim.name, "a");
    check_span (text, items[0].skim.managed, ",\"managedFields\":[]");
    check_span (text, items[1].object, "{\"x\":[]}");
    /* All are counted, whatever room there is. */
    assert_int_equal (skim_list (text, &list, items, 1), 0);
    assert_int_equal (list.count, 2);
    assert_int_equal (skim_list ("{\"items\":[]}", &list, NULL, 0), 0);
    assert_int_equal (skim_list ("{\"items\":null,\"metadata\":{\"continue\":\"\"}}",
                                 &list, NULL, 0), 0);
    assert_int_equal (list.count + list.more.size + list.version.size, 0);
}

static void test_other_lists (void **state)
{
    static const char *const texts[] = {
        "", "[]", "{\"items\":{}}", "{\"items\":[1]}", "{\"items\":[{},]}",
        "{\"items\":[{} {}]}", "{\"items\":[{}}", "{\"items\":[],\"items\":[]}",
        "{\"items\":[{\"kind\":1}]}", "{\"metadata\":null}",
        "{\"metadata\":{},\"metadata\":{}}",
        "{\"metadata\":{\"continue\":1}}",
        "{\"metadata\":{\"continue\":\"a\",\"continue\":\"\"}}",
        "{\"metadata\":{\"resourceVersion\":\"\\u0031\"}}", "{\"items\":[]}x",
    };

    for (size_t i = 0; i < sizeof (texts) / sizeof (texts[0]); i++) {
        struct dws_item item;
        struct dws_list list;

        if (skim_list (texts[i], &list, &item, 1) == 0)
            fail_msg ("taken: %s", texts[i]);
        assert_int_equal (errno, EINVAL);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_parts),
        cmocka_unit_test (test_what_is_not_there),
        cmocka_unit_test (test_utf8),
        cmocka_unit_test (test_managed_fields),
        cmocka_unit_test (test_refusals),
        cmocka_unit_test (test_cut_off),
        cmocka_unit_test (test_depth),
        cmocka_unit_test (test_events),
        cmocka_unit_test (test_other_lines),
        cmocka_unit_test (test_broken_lines),
        cmocka_unit_test (test_newest),
        cmocka_unit_test (test_newest_of_many),
        cmocka_unit_test (test_list),
        cmocka_unit_test (test_other_lists),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}

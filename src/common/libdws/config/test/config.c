/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of config.c.
 */

#include <stdlib.h>
#include <unistd.h>

#include "libdws/config/config.h"
#include "libdws/test/util.h"

#define FIFTY "/folder-of-25-characters-" "/folder-of-25-characters-"

static const struct {
    const char *table;
    const char *error;
} bad[] = {
    { "5", "rabbit: expected a table" },
    { "{}", "rabbit.mapping: is required" },
    { "{'mapping': ''}", "rabbit.mapping: expected a text, got \"\"" },
    { "{'mapping': 'm', 'maping': 'm'}", "rabbit.maping: unknown key, did you mean mapping?" },
    { "{'tc_timeout': 'ten'}",
      "rabbit.tc_timeout: expected seconds >= 0, got \"ten\"" },
    { "{'tc_timeout': -1}",
      "rabbit.tc_timeout: expected seconds >= 0, got -1" },
    { "{'tc_timeout': '-1s'}", "expected seconds >= 0, got \"-1s\"" },
    { "{'tc_timeout': ''}", "expected seconds >= 0, got \"\"" },
    { "{'setup_timeout': true}",
      "rabbit.setup_timeout: expected seconds, got true" },
    { "{'setup_timeout': '5x'}", "rabbit.setup_timeout: expected seconds" },
    { "{'setup_timeout': '5 s'}",
      "rabbit.setup_timeout: expected seconds, got \"5 s\", did you mean \"5s\"?" },
    { "{'tc_timeout': '5min'}",
      "expected seconds >= 0, got \"5min\", did you mean \"5m\"?" },
    { "{'tc_timeout': '1h30m'}", "did you mean \"90m\"?" },
    { "{'tc_timeout': '2 Weeks'}", "did you mean \"14d\"?" },
    { "{'tc_timeout': '1.5hours'}", "did you mean \"90m\"?" },
    { "{'tc_timeout': '250msec'}", "did you mean \"0.25s\"?" },
    { "{'setup_timeout': 'nan'}", "rabbit.setup_timeout: expected seconds" },
    { "{'setup_timeout': '1e308d'}", "rabbit.setup_timeout: expected" },
    { "{'prolog_timeout': []}", "rabbit.prolog_timeout: expected seconds" },
    { "{'save_datamovements': -1}",
      "rabbit.save_datamovements: expected an integer >= 0, got -1" },
    { "{'save_datamovements': 1.5}",
      "rabbit.save_datamovements: expected an integer" },
    { "{'preset_variables': {'A': 'x y'}}",
      "rabbit.preset_variables: remove it, and write what they stand for into"
      " the presets" },
    { "{'avoid_suspects': true}",
      "rabbit.avoid_suspects: remove it, jobs try such rabbits; flux rabbit"
      " disable keeps them off" },
    { "{'data_first_yield': '1m'}",
      "rabbit.data_first_yield: remove it, it is a thirtieth of"
      " data_first_timeout, and 2 minutes at most" },
    { "{'allow_insecure_kubernetes': true}",
      "rabbit.allow_insecure_kubernetes: remove it, it is the option"
      " --allow-insecure-kubernetes of flux-coral2-dws" },
    { "{'workers': 4}",
      "rabbit.workers: remove it, it is the option --workers of"
      " flux-coral2-dws" },
    { "{'save_datamovements': -1}",
      "rabbit.save_datamovements: expected an integer >= 0, got -1" },
    { "{'restrict_persistent_creation': 1}",
      "rabbit.restrict_persistent_creation: expected true or false, got 1" },
    { "{'restrict_persist': true}",
      "rabbit.restrict_persist: unknown key" },
    { "{'pstrun_timeout': 5}",
      "rabbit.pstrun_timeout: unknown key, did you mean postrun_timeout?" },
    { "{'TC-Timeout': 5}",
      "rabbit.TC-Timeout: unknown key, did you mean tc_timeout?" },
    { "{'orphan_grace': 10}",
      "rabbit.orphan_grace: remove it, it is always 10 s" },
    { "{'environment': ['DW_*', 5]}",
      "rabbit.environment: remove it, jobs get DW_* and NNF_*" },
    { "{'notice_command': '/bin/true'}",
      "rabbit.notice_command: expected an array of texts" },
    { "{'notice_command': []}",
      "rabbit.notice_command: expected an array that begins with an absolute" },
    { "{'notice_command': ['mail', '/x']}",
      "rabbit.notice_command: expected an array that begins" },
    { "{'metrics': '9464'}", "rabbit.metrics: expected 127.0.0.1:PORT" },
    { "{'metrics': '0.0.0.0:9464'}", "rabbit.metrics: expected" },
    { "{'metrics': 'unix:/run/" FIFTY FIFTY "eight'}",
      "rabbit.metrics: the path of a socket has 107 bytes at most" },
    { "{'metrics': '127.0.0.1:'}", "rabbit.metrics: expected" },
    { "{'metrics': '127.0.0.1:99999'}", "rabbit.metrics: expected" },
    { "{'metrics': 'unix:relative'}", "rabbit.metrics: expected" },
    { "{'policy': 5}", "rabbit.policy: expected a table" },
    { "{'policy': {'maximum': {}}}", "rabbit.policy.maximum: unknown key, did you mean maximums?" },
    { "{'policy': {'maximums': 5}}", "rabbit.policy.maximums: expected" },
    { "{'policy': {'maximums': {'xfs': 'big'}}}",
      "rabbit.policy.maximums.xfs: expected GiB >= 0, got \"big\"" },
    { "{'policy': {'maximums': {'ext4': 5}}}",
      "rabbit.policy.maximums.ext4: unknown file system type" },
    { "{'policy': {'maximums': {'lustr': 5}}}",
      "rabbit.policy.maximums.lustr: unknown file system type, did you mean"
      " lustre?" },
    { "{'policy': {'maximums': {'xfs': '1TiB'}}}",
      "expected GiB >= 0, got \"1TiB\", did you mean 1024?" },
    { "{'limits': {'a': {'jbo': '1TiB'}}}",
      "rabbit.limits.a.jbo: unknown key, did you mean job?" },
    { "{'limits': {'a': {'job': '1 T'}}}",
      "rabbit.limits.a.job: expected a size such as \"20TiB\", or \"unlimited\","
      " got \"1 T\", did you mean \"1TiB\"?" },
    { "{'daemons': {'copy-offload': ''}}",
      "rabbit.daemons.copy-offload: expected a systemd unit" },
    { "{'presets': {'a': '#DW jobwd'}}", "rabbit.presets.a: " },
};

static void test_faults (void **state)
{
    for (size_t i = 0; i < sizeof (bad) / sizeof (bad[0]); i++) {
        json_t *table = J (bad[i].table);
        dws_error_t e = { "" };

        if (json_is_object (table) && !strstr (bad[i].error, "mapping"))
            json_object_set_new (table, "mapping", json_string ("m"));
        errno = 0;
        assert_null (dws_config_create (table, NULL, &e));
        assert_int_equal (errno, EINVAL);
        assert_contains (e.text, bad[i].error);
        json_decref (table);
    }
}

static json_t *faults_of (json_t *table, json_t *queues)
{
    json_t *result = dws_config_faults (table, queues);
    json_t *faults = json_incref (json_object_get (result, "faults"));

    assert_non_null (faults);
    json_decref (result);
    return faults;
}

static void test_all_faults (void **state)
{
    json_t *table = J ("{'tc_timeout': 'ten', 'nonsense': 1,"
                       " 'workers': 4, 'soft_drain': 0}");
    json_t *faults = faults_of (table, NULL);

    assert_int_equal (json_array_size (faults), 5);
    json_decref (faults);
    json_decref (table);
}

/* What is outside of the table, and keys that contradict each other. Each of these
 * is refused; where an instance may start with it, that tells of it.
 */
static const struct {
    const char *table;
    const char *error;
    bool starts;
} outside[] = {
    { "{'mapping': '/no/such'}", "rabbit.mapping: /no/such: ", false },
    { "{'drain_queues': ['debgu']}",
      "rabbit.drain_queues: there is no queue debgu, did you mean debug?", false },
    { "{'drain_queues': ['orphan']}",
      "rabbit.drain_queues: there is no queue gone", false },
    { "{'drain_queues': ['odd']}",
      "queues.odd.requires: expected an array of texts", false },
    { "{'kubeconfig': '/no/such'}",
      "rabbit.kubeconfig: /no/such: No such file or directory", true },
    { "{'kubeconfig': '/tmp'}", "rabbit.kubeconfig: /tmp: not a file", true },
    { "{'kubeconfig': 'kubeconfig'}",
      "rabbit.kubeconfig: expected an absolute path, got \"kubeconfig\"", true },
    { "{'kubeconfig': '~/no-such'}",
      "rabbit.kubeconfig: ~/no-such: No such file or directory", true },
    { "{'notice_command': ['/no/such']}",
      "rabbit.notice_command: /no/such: No such file or directory", true },
    { "{'notice_command': ['/tmp']}",
      "rabbit.notice_command: /tmp is not a program that can be run", true },
    { "{'postrun_timeout': '15m', 'teardown_after': '10m'}",
      "rabbit.teardown_after: expected at least rabbit.postrun_timeout (900 s),"
      " got 600 s", true },
    { "{'prolog_timeout': '15m', 'space_timeout': '15m'}",
      "rabbit.space_timeout: expected less than rabbit.prolog_timeout (900 s),"
      " got 900 s", true },
    { "{'limits': {'a': {'queue': 'batsh', 'allow': false}}}",
      "rabbit.limits.a.queue: there is no queue batsh, did you mean batch?", true },
};

static const char *const agree[] = {
    "{'postrun_timeout': '15m', 'teardown_after': '15m'}",
    "{'postrun_timeout': '15m', 'teardown_after': 0}",
    "{'postrun_timeout': 0, 'teardown_after': '1m'}",
    "{'prolog_timeout': '5m'}",
    "{'prolog_timeout': '5m', 'space_timeout': 0}",
    "{'prolog_timeout': 0, 'space_timeout': '2h'}",
    "{'drain_queues': ['debug', 'virtual']}",
    "{'kubeconfig': '/etc/passwd', 'notice_command': ['/bin/sh']}",
    "{'limits': {'a': {'queue': 'batch', 'user': 'root', 'allow': false}}}",
};

#define QUEUES "{'debug': {'requires': ['a']}, 'batch': {}," \
               " 'virtual': {'parent': 'debug'}, 'orphan': {'parent': 'gone'}," \
               " 'odd': {'requires': 5}}"

static char mapping[] = "/tmp/test-config-XXXXXX";

static json_t *with_mapping (const char *text)
{
    json_t *table = J (text);

    if (!json_object_get (table, "mapping"))
        json_object_set_new (table, "mapping", json_string (mapping));
    return table;
}

static void test_outside (void **state)
{
    json_t *queues = J (QUEUES);

    for (size_t i = 0; i < sizeof (outside) / sizeof (outside[0]); i++) {
        json_t *table = with_mapping (outside[i].table);
        json_t *faults = faults_of (table, queues);
        json_t *notes = json_array ();
        struct dws_config *c;
        dws_error_t e = { "" };

        assert_null (dws_config_load (table, queues, NULL, &e));
        assert_int_equal (errno, EINVAL);
        assert_contains (e.text, outside[i].error);
        assert_int_equal (json_array_size (faults), 1);
        assert_string_equal (json_string_value (json_array_get (faults, 0)), e.text);
        c = dws_config_load (table, queues, notes, &e);
        assert_true (outside[i].starts == (c != NULL));
        assert_true (json_equal (notes, faults) == outside[i].starts);
        dws_config_destroy (c);
        json_decref (notes);
        json_decref (faults);
        json_decref (table);
    }
    json_decref (queues);
}

static void test_agree (void **state)
{
    json_t *queues = J (QUEUES);

    for (size_t i = 0; i < sizeof (agree) / sizeof (agree[0]); i++) {
        json_t *table = with_mapping (agree[i]);
        json_t *faults = faults_of (table, queues);
        dws_error_t e = { "" };
        struct dws_config *c = dws_config_load (table, queues, NULL, &e);

        assert_string_equal (e.text, "");
        assert_non_null (c);
        assert_non_null (c->topology);
        assert_json (faults, "[]");
        dws_config_destroy (c);
        json_decref (faults);
        json_decref (table);
    }
    json_decref (queues);
}

/* Without the table [queues] nothing is said of them.
 */
static void test_no_queues (void **state)
{
    json_t *table = with_mapping ("{'drain_queues': ['any'],"
                                  " 'limits': {'a': {'queue': 'any', 'allow': true}}}");
    json_t *faults = faults_of (table, NULL);

    assert_json (faults, "[]");
    json_decref (faults);
    json_decref (table);
}

static void test_names (void **state)
{
    json_t *table = with_mapping ("{'limits': {"
                                  "'a': {'user': 'no-such-user', 'allow': true},"
                                  "'b': {'group': 'no-such-group', 'allow': true},"
                                  "'c': {'user': '4711', 'allow': true},"
                                  "'d': {'user': 'root', 'allow': true}}}");
    json_t *faults = faults_of (table, NULL);
    json_t *plain = J ("{'c': {'user': '4711'}, 'contact': 'me', 'd': {}}");

    assert_json (faults, "['rabbit.limits.a.user: there is no user no-such-user',"
                         " 'rabbit.limits.b.group: there is no group no-such-group']");
    assert_true (dws_config_has_names (json_object_get (table, "limits")));
    assert_false (dws_config_has_names (plain));
    assert_false (dws_config_has_names (NULL));
    json_decref (plain);
    json_decref (faults);
    json_decref (table);
}

static int make_mapping (void **state)
{
    static const char text[] =
        "{\"computes\": {\"n0\": \"r0\"}, \"rabbits\": {\"r0\":"
        " {\"capacity\": 1099511627776, \"hostlist\": \"n0\"}}}";
    int fd = mkstemp (mapping);

    return fd < 0 || write (fd, text, strlen (text)) < 0 || close (fd) < 0 ? -1 : 0;
}

static int remove_mapping (void **state)
{
    return unlink (mapping);
}

/* At the start of an instance nothing stops for a word too many.
 */
static void test_notes (void **state)
{
    json_t *table = J ("{'mapping': 'm', 'nonsense': 1, 'nnf_api_version': 'v1',"
                       " 'max_directives': 9,"
                       " 'restrict_persistent': false}");
    json_t *notes = json_array ();
    struct dws_config *c = dws_config_create (table, notes, NULL);
    json_t *result = dws_config_faults (table, NULL);
    dws_error_t e;

    assert_non_null (c);
    assert_false (c->restrict_persistent);
    assert_json (notes,
                 "['rabbit.nonsense: unknown key',"
                 " 'rabbit.nnf_api_version: has no effect, the API server tells"
                 " its versions',"
                 " 'rabbit.max_directives: remove it, it is always 64',"
                 " 'rabbit.restrict_persistent: is now called"
                 " rabbit.restrict_persistent_creation']");
    assert_json (json_object_get (result, "notes"),
                 "['rabbit.nnf_api_version: has no effect, the API server tells"
                 " its versions',"
                 " 'rabbit.restrict_persistent: is now called"
                 " rabbit.restrict_persistent_creation']");
    assert_int_equal (json_array_size (json_object_get (result, "faults")), 3);
    dws_config_destroy (c);
    json_decref (result);
    json_array_clear (notes);

    json_object_set_new (table, "restrict_persistent_creation", json_true ());
    assert_null (dws_config_create (table, notes, &e));
    assert_contains (e.text, "rabbit.restrict_persistent: is the old name");
    json_object_set_new (table, "restrict_persistent_creation", json_false ());
    assert_non_null (c = dws_config_create (table, notes, NULL));
    assert_false (c->restrict_persistent);
    dws_config_destroy (c);
    json_decref (notes);

    /* With no place to say it only what is known passes. */
    assert_null (dws_config_create (table, NULL, &e));
    assert_contains (e.text, "rabbit.nonsense: unknown key");
    json_object_del (table, "nonsense");
    assert_null (dws_config_create (table, NULL, &e));
    assert_contains (e.text, "rabbit.max_directives: remove it");
    json_object_del (table, "max_directives");
    assert_non_null (c = dws_config_create (table, NULL, NULL));
    dws_config_destroy (c);
    json_decref (table);
}

static void test_defaults (void **state)
{
    static const struct dws_policy policy = DWS_POLICY_DEFAULT;
    json_t *table = J ("{'mapping': '/m'}");
    struct dws_config *c = dws_config_create (table, NULL, NULL);
    json_t *agent;

    assert_non_null (c);
    assert_string_equal (c->mapping, "/m");
    assert_true (c->policy.tc_timeout == policy.tc_timeout);
    assert_true (c->policy.setup_timeout == policy.setup_timeout);
    assert_true (c->policy.prerun_timeout == policy.prerun_timeout);
    assert_true (c->policy.postrun_timeout == policy.postrun_timeout);
    assert_true (c->policy.teardown_after == policy.teardown_after);
    assert_true (c->policy.orphan_grace == policy.orphan_grace);
    assert_int_equal (c->policy.save_datamovements,
                      policy.save_datamovements);
    assert_true (c->restrict_persistent);
    assert_true (c->drain_compute_nodes);
    assert_true (c->soft_drain);
    assert_true (c->policy.prolog_timeout == 1800.);
    assert_null (c->kubeconfig);
    assert_null (c->maximums);
    assert_true (c->policy.data_first_yield == 120.);
    assert_int_equal (c->policy.container_log_bytes, 4096);
    agent = dws_config_agent (c);
    assert_json (agent, "{'kubeconfig': null, 'metrics': null}");
    json_decref (agent);
    dws_config_destroy (c);
    json_decref (table);
}

static const struct {
    const char *value;
    double seconds;
} times[] = {
    { "5", 5. }, { "0.25", 0.25 }, { "-3", -3. }, { "'7'", 7. },
    { "'500ms'", 0.5 }, { "'90s'", 90. }, { "'1.5m'", 90. },
    { "'2h'", 7200. }, { "'1d'", 86400. }, { "'-1'", -1. },
    { "'inf'", -1. }, { "'INFINITY'", -1. }, { "0", -1. }, { "0.0", -1. },
    { "'0s'", -1. }, { "'0'", -1. },
};

static struct dws_config *create_with (const char *key, const char *value)
{
    json_t *table = J ("{'mapping': '/m'}");
    struct dws_config *c;

    json_object_set_new (table, key, J (value));
    assert_non_null (c = dws_config_create (table, NULL, NULL));
    json_decref (table);
    return c;
}

static void test_times (void **state)
{
    for (size_t i = 0; i < sizeof (times) / sizeof (times[0]); i++) {
        struct dws_config *c = create_with ("setup_timeout", times[i].value);

        assert_true (c->policy.setup_timeout == times[i].seconds);
        dws_config_destroy (c);
    }
}

/* Data that keeps nodes idle is kept for less.
 */
static void test_yield (void **state)
{
    static const struct {
        const char *timeout;
        double seconds;
    } yields[] = {
        { "'5m'", 10. }, { "3600", 120. }, { "'2h'", 120. }, { "0", 120. },
        { "-1", 120. },
    };

    for (size_t i = 0; i < sizeof (yields) / sizeof (yields[0]); i++) {
        struct dws_config *c = create_with ("data_first_timeout", yields[i].timeout);

        assert_true (c->policy.data_first_yield == yields[i].seconds);
        dws_config_destroy (c);
    }
}

/* A limit of 0 is none; what is no limit may be 0.
 */
static void test_zero (void **state)
{
    json_t *table = J ("{'mapping': '/m', 'tc_timeout': 0,"
                       " 'setup_timeout': 0, 'prerun_timeout': 0,"
                       " 'postrun_timeout': '0s', 'teardown_after': 0,"
                       " 'prolog_timeout': 0, 'space_timeout': 0,"
                       " 'stage_out_retry': '0m'}");
    struct dws_config *c = dws_config_create (table, NULL, NULL);

    assert_non_null (c);
    assert_true (c->policy.tc_timeout == -1.);
    assert_true (c->policy.setup_timeout == -1.);
    assert_true (c->policy.prerun_timeout == -1.);
    assert_true (c->policy.postrun_timeout == -1.);
    assert_true (c->policy.teardown_after == -1.);
    assert_true (c->policy.prolog_timeout == -1.);
    assert_true (c->space_timeout == -1.);
    assert_true (c->policy.stage_out_retry == 0.);
    dws_config_destroy (c);
    json_decref (table);
}

static void test_values (void **state)
{
    json_t *table = J ("{'mapping': '/m', 'kubeconfig': '/k',"
                       " 'metrics': 'unix:/run/m',"
                       " 'tc_timeout': 'inf', 'soft_drain': false,"
                       " 'policy': {'maximums': {'xfs': 5}},"
                       " 'daemons': {'scr': 'scr.service'},"
                       " 'presets': {'a': '#DW jobdw type=xfs"
                       " capacity=1GiB name=aa'}}");
    struct dws_config *c = dws_config_create (table, NULL, NULL);
    json_t *agent;

    assert_non_null (c);
    assert_true (c->policy.tc_timeout == -1.);
    assert_false (c->soft_drain);
    assert_json (c->maximums, "{'xfs': 5}");
    assert_json (c->daemons, "{'scr': 'scr.service'}");
    assert_int_equal (json_object_size (c->presets), 1);
    agent = dws_config_agent (c);
    assert_json (agent, "{'kubeconfig': '/k', 'metrics': 'unix:/run/m'}");
    json_decref (agent);
    dws_config_destroy (c);
    json_decref (table);
}

/* The plugin does without what it does not go by, good or not.
 */
static void test_plugin (void **state)
{
    json_t *table = J ("{'tc_timeout': 'ten', 'nonsense': 1,"
                       " 'persistent_lifetime': '2d',"
                       " 'allow_rabbit_resources': true,"
                       " 'limits': {'all': {'job': '1GiB'}}}");
    struct dws_config *c = dws_config_plugin (table, NULL);
    dws_error_t e;

    assert_non_null (c);
    assert_true (c->rabbit_resources);
    assert_true (c->persistent_lifetime == 2. * 86400.);
    assert_true (dws_limits_any (c->storage_limits));
    dws_config_destroy (c);
    json_object_set_new (table, "persistent_lifetime", json_string ("x"));
    errno = 0;
    assert_null (dws_config_plugin (table, &e));
    assert_int_equal (errno, EINVAL);
    assert_string_equal (e.text,
                         "rabbit.persistent_lifetime: expected seconds, got"
                         " \"x\"");
    json_decref (table);
    table = json_integer (1);
    assert_null (dws_config_plugin (table, &e));
    assert_string_equal (e.text, "rabbit: expected a table");
    json_decref (table);
    assert_non_null (c = dws_config_plugin (NULL, NULL));
    assert_false (c->rabbit_resources);
    dws_config_destroy (c);
}

/* Every default passes its own check, and every key has a text.
 */
static void test_describe (void **state)
{
    json_t *options = dws_config_describe ();
    json_t *entry;
    size_t index;

    assert_true (json_array_size (options) > 10);
    json_array_foreach (options, index, entry) {
        const char *help = json_string_value (json_object_get (entry, "help"));

        assert_non_null (help);
        assert_int_equal (help[strlen (help) - 1], '.');
        assert_non_null (json_object_get (entry, "default"));
    }
    json_decref (options);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_faults),
        cmocka_unit_test (test_all_faults),
        cmocka_unit_test (test_outside),
        cmocka_unit_test (test_agree),
        cmocka_unit_test (test_no_queues),
        cmocka_unit_test (test_names),
        cmocka_unit_test (test_notes),
        cmocka_unit_test (test_defaults),
        cmocka_unit_test (test_times),
        cmocka_unit_test (test_yield),
        cmocka_unit_test (test_zero),
        cmocka_unit_test (test_values),
        cmocka_unit_test (test_plugin),
        cmocka_unit_test (test_describe),
    };
    return cmocka_run_group_tests (tests, make_mapping, remove_mapping);
}

/* Several links as one, over links that only remember what they are told. */
#include "net/link_many.h"
#include "support/check.h"

#include <string.h>

enum { ME = 4, ROOM = 4 };

typedef struct fake {
    rfi_netlink base;
    int published, asked;
    double takes; /* seconds to publish */
    rfi_message waiting[ROOM];
    int first, count;
} fake;

static double seconds;

static double test_clock(void)
{
    return seconds;
}

static void fake_publish(rfi_netlink *base, const rfi_topic *topic, const void *bytes, size_t size)
{
    (void)topic;
    (void)bytes;
    (void)size;
    ((fake *)base)->published++;
    seconds += ((fake *)base)->takes;
}

static void fake_get(rfi_netlink *base, const rfi_topic *topic)
{
    (void)topic;
    ((fake *)base)->asked++;
}

static bool fake_poll(rfi_netlink *base, rfi_message *message)
{
    fake *link = (fake *)base;
    if (link->first == link->count) {
        return false;
    }
    *message = link->waiting[link->first++];
    return true;
}

static const rfi_netlink_ops operations = {fake_publish, fake_get, fake_poll};

static void bring(fake *link, rfi_message_kind kind, uint32_t agent)
{
    assert_true(link->count < ROOM);
    link->waiting[link->count++] = (rfi_message){.kind = kind, .topic = {.kind = RFI_TOPIC_SLOT, .agent = agent}};
}

static void what_is_sent_goes_to_all_and_what_comes_is_taken_in_turn(void **state)
{
    (void)state;
    fake links[3] = {{.base = {&operations}}, {.base = {&operations}}, {.base = {&operations}}};
    rfi_netlink *all[3] = {&links[0].base, &links[1].base, &links[2].base};
    rfi_netlink *many = NULL;
    rfi_message message;
    const rfi_topic topic = {.kind = RFI_TOPIC_SLOT, .agent = ME};
    assert_int_equal(rfi_many_open(&many, NULL, ME, all, 3, test_clock, NULL), REEF_OK);
    many->ops->publish(many, &topic, "x", 1);
    many->ops->get(many, &topic);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(links[i].published, 1);
        assert_int_equal(links[i].asked, 1);
    }
    for (int i = 0; i < 3; i++) { /* one that floods does not keep the others waiting */
        bring(&links[0], RFI_MESSAGE_DATA, 10);
    }
    bring(&links[1], RFI_MESSAGE_DATA, 11);
    bring(&links[2], RFI_MESSAGE_UP, 12);
    static const uint32_t expected[] = {10, 11, 12, 10, 10};
    for (ptrdiff_t i = 0; i < COUNT(expected); i++) {
        assert_true(many->ops->poll(many, &message));
        assert_int_equal(message.topic.agent, expected[i]);
        assert_int_equal(message.topic.way, expected[i] - 9);
    }
    assert_false(many->ops->poll(many, &message));
    rfi_many_close(&many);
    assert_null(many);
    rfi_many_close(&many);
}

/* One broker that has lost, or hides, what this agent has signed must not make it sign again. */
static void nothing_is_stored_of_this_agent_if_all_say_so(void **state)
{
    (void)state;
    fake links[2] = {{.base = {&operations}}, {.base = {&operations}}};
    rfi_netlink *all[2] = {&links[0].base, &links[1].base};
    rfi_netlink *many = NULL;
    rfi_message message;
    assert_int_equal(rfi_many_open(&many, NULL, ME, all, 2, test_clock, NULL), REEF_OK);
    bring(&links[0], RFI_MESSAGE_ABSENT, ME);
    bring(&links[0], RFI_MESSAGE_ABSENT, ME);
    assert_false(many->ops->poll(many, &message));
    bring(&links[0], RFI_MESSAGE_ABSENT, ME + 1); /* of others it is told as it comes */
    assert_true(many->ops->poll(many, &message));
    assert_int_equal(message.topic.agent, ME + 1);
    bring(&links[1], RFI_MESSAGE_ABSENT, ME);
    assert_true(many->ops->poll(many, &message));
    assert_int_equal(message.kind, RFI_MESSAGE_ABSENT);
    assert_int_equal(message.topic.agent, ME);
    assert_false(message.partial);
    rfi_many_close(&many);
}

/* Nor one that plays an old model of this agent back, before the others have answered. */
static void what_is_stored_of_this_agent_is_known_when_all_have_answered(void **state)
{
    (void)state;
    fake links[2] = {{.base = {&operations}}, {.base = {&operations}}};
    rfi_netlink *all[2] = {&links[0].base, &links[1].base};
    rfi_netlink *many = NULL;
    rfi_message message;
    assert_int_equal(rfi_many_open(&many, NULL, ME, all, 2, test_clock, NULL), REEF_OK);
    bring(&links[0], RFI_MESSAGE_DATA, ME);
    bring(&links[1], RFI_MESSAGE_DATA, ME + 1);
    bring(&links[1], RFI_MESSAGE_UP, ME);
    assert_true(many->ops->poll(many, &message));
    assert_int_equal(message.topic.agent, ME);
    assert_true(message.partial);
    for (int i = 0; i < 2; i++) { /* a model of another, a connection: no answer */
        assert_true(many->ops->poll(many, &message));
        assert_false(message.partial);
    }
    bring(&links[0], RFI_MESSAGE_DATA, ME); /* the same broker once more */
    assert_true(many->ops->poll(many, &message));
    assert_true(message.partial);
    bring(&links[1], RFI_MESSAGE_DATA, ME);
    assert_true(many->ops->poll(many, &message));
    assert_false(message.partial);
    rfi_many_close(&many);
}

/* One that does not read what is sent to it costs a tenth of the time at most, as long as another one does. */
static void a_broker_that_holds_up_is_left_alone(void **state)
{
    (void)state;
    fake links[2] = {{.base = {&operations}, .takes = RFI_LINK_PATIENCE}, {.base = {&operations}}};
    rfi_netlink *all[2] = {&links[0].base, &links[1].base};
    rfi_netlink *many = NULL;
    const rfi_topic topic = {.kind = RFI_TOPIC_SLOT, .agent = ME};
    assert_int_equal(rfi_many_open(&many, NULL, ME, all, 2, test_clock, NULL), REEF_OK);
    seconds = 1000;
    while (seconds < 2000) {
        many->ops->publish(many, &topic, "x", 1);
        many->ops->get(many, &topic);
        seconds += 1;
    }
    assert_true(links[0].published * RFI_LINK_PATIENCE <= 0.1 * 1000 && links[0].published >= 8);
    assert_true(links[1].published >= 900 && links[1].asked >= 900);
    links[1].takes = RFI_LINK_PATIENCE; /* where both are slow, it is not the brokers */
    for (int i = 0; i < 10; i++) {
        many->ops->publish(many, &topic, "x", 1);
    }
    links[0].published = links[1].published = 0;
    many->ops->publish(many, &topic, "x", 1);
    assert_int_equal(links[0].published + links[1].published, 2);
    rfi_many_close(&many);
}

static void what_is_for_one_goes_to_that_one(void **state)
{
    (void)state;
    fake links[2] = {{.base = {&operations}}, {.base = {&operations}}};
    rfi_netlink *all[2] = {&links[0].base, &links[1].base};
    rfi_netlink *many = NULL;
    const rfi_topic topic = {.kind = RFI_TOPIC_SLOT, .agent = ME, .way = 2};
    assert_int_equal(rfi_many_open(&many, NULL, ME, all, 2, test_clock, NULL), REEF_OK);
    many->ops->publish(many, &topic, "x", 1);
    assert_int_equal(links[0].published, 0);
    assert_int_equal(links[1].published, 1);
    rfi_many_close(&many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_sent_goes_to_all_and_what_comes_is_taken_in_turn),
        cmocka_unit_test(nothing_is_stored_of_this_agent_if_all_say_so),
        cmocka_unit_test(what_is_stored_of_this_agent_is_known_when_all_have_answered),
        cmocka_unit_test(a_broker_that_holds_up_is_left_alone),
        cmocka_unit_test(what_is_for_one_goes_to_that_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

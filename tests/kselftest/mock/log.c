// SPDX-License-Identifier: GPL-2.0
/* Questions to the mock daemon's record of requests. */
#include "mock.h"

static bool matches(const struct mock_record *record, uint32_t opcode, uint64_t id)
{
	return record->in.opcode == opcode && (!id || record->in.nodeid == id);
}

static uint32_t recorded(struct mock *m)
{
	return __atomic_load_n(&m->records, __ATOMIC_ACQUIRE);
}

uint32_t mock_count(struct mock *m, uint32_t opcode)
{
	return mock_count_node(m, opcode, 0);
}

uint32_t mock_count_node(struct mock *m, uint32_t opcode, uint64_t id)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < recorded(m); i++)
		count += matches(&m->record[i], opcode, id);
	return count;
}

uint32_t mock_max_size(struct mock *m, uint32_t opcode, uint64_t id)
{
	uint32_t max = 0;

	for (uint32_t i = 0; i < recorded(m); i++)
		if (matches(&m->record[i], opcode, id) && m->record[i].size > max)
			max = m->record[i].size;
	return max;
}

uint64_t mock_sum_size(struct mock *m, uint32_t opcode, uint64_t id)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < recorded(m); i++)
		if (matches(&m->record[i], opcode, id))
			sum += m->record[i].size;
	return sum;
}

uint32_t mock_covering(struct mock *m, uint64_t id, uint64_t offset)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < recorded(m); i++) {
		struct mock_record *record = &m->record[i];

		count += matches(record, FUSE_READ, id) && record->offset <= offset &&
			 offset - record->offset < record->size;
	}
	return count;
}

struct mock_record *mock_last(struct mock *m, uint32_t opcode)
{
	for (uint32_t i = recorded(m); i > 0; i--)
		if (m->record[i - 1].in.opcode == opcode)
			return &m->record[i - 1];
	return NULL;
}

uint64_t mock_owed(struct mock *m)
{
	uint64_t owed = 0;

	for (uint32_t i = 0; i < m->nodes; i++)
		owed += m->node[i].lookups - m->node[i].forgotten;
	return owed;
}

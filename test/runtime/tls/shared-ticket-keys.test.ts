/** Ticket keys of a cluster whose Redis gives replies that no Redis should give. */
import { randomBytes } from 'node:crypto';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Cluster } from '../../../runtime/cluster/cluster.ts';
import type { RedisReply } from '../../../runtime/cluster/redis-connection.ts';
import { SealedValues } from '../../../runtime/cluster/sealed-values.ts';
import { SharedTicketKeys } from '../../../runtime/tls/shared-ticket-keys.ts';
import { TICKET_KEY_BYTES } from '../../../runtime/tls/ticket-keys.ts';

const test = suite('shared ticket keys');

for (const [name, reply] of [
	['nothing', null],
	['a text', Buffer.from('PONG')],
	['no elements', []],
	['only the time', [1]],
	['the time in the wrong place', [[], 1]],
	['a period without a key', [Date.now(), [Buffer.from('0'), null]]],
] as readonly (readonly [string, RedisReply])[]) {
	test(`a reply with ${name} leaves the keys of this process in use`, async () => {
		const cluster = { redisKey: (key: string) => key, runScript: async () => reply } as unknown as Cluster;
		const ownKey = randomBytes(TICKET_KEY_BYTES);
		const sealedValues = new SealedValues([randomBytes(32).toString('base64')]);
		const keys = new SharedTicketKeys(cluster, sealedValues, [ownKey], { onChanged() {}, log() {} });
		await keys.start(1000);
		keys.close();
		assert.ok(ownKey.equals(keys.current[0]!));
	});
}

test.run();

/** The mailbox in which a process is notified that other machines have ended fetches, with a fake Redis. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Cluster } from '../../../runtime/cluster/cluster.ts';
import type { RedisReply } from '../../../runtime/cluster/redis-connection.ts';
import { ResponseMailbox } from '../../../runtime/cluster/response-mailbox.ts';
import { until } from '../../harness.ts';

const mailboxes = suite('mailboxes of shared responses');

/** A fake Redis stream, which contains the entries of the mailbox. */
class MemoryMailbox {
	readonly #entries: { readonly at: number; readonly lease: string; readonly outcome: string }[] = [];
	#wake: () => void = () => {};
	reads = 0;
	/** True if each read returns no entries immediately, as a Redis would that does not wait for one. */
	answersAtOnce = false;
	/** Position in the stream after which the latest read asked for entries. */
	lastPosition = '';

	add(at: number, lease: string, outcome: string): void {
		this.#entries.push({ at, lease, outcome });
		this.#wake();
	}

	open(): ResponseMailbox {
		const connection = { sendCommand: (args: readonly string[]) => this.#read(args), close: () => this.#wake() };
		return new ResponseMailbox({ openConnection: async () => connection } as unknown as Cluster, 'mailbox');
	}

	async #read(args: readonly string[]): Promise<RedisReply> {
		this.reads++;
		this.lastPosition = args.at(-1)!;
		const after = Number.parseInt(this.lastPosition, 10);
		const found = () => this.#entries.filter(({ at }) => at > after);
		if (found().length === 0) {
			if (this.answersAtOnce) return null;
			await new Promise<void>(resolve => {
				this.#wake = resolve;
			});
		}
		const entries = found().map(({ at, lease, outcome }) => [
			Buffer.from(`${at}-0`),
			['lease', lease, 'outcome', outcome].map(text => Buffer.from(text)),
		]);
		return [[Buffer.from('mailbox'), entries]];
	}
}

mailboxes('a notification about an earlier fetch does not end a wait, one about the awaited fetch does', async () => {
	const redis = new MemoryMailbox();
	// Nobody has read this notification, because the request that had waited for it had given up.
	redis.add(1000, 'lease', 'private');
	const mailbox = redis.open();
	const waiting = mailbox.prepare('lease').wait(60_000, 5000);
	await until('the old notification has been read', () => redis.lastPosition === '1000-0');
	redis.add(5001, 'lease', 'stored');
	assert.is(await waiting, 'stored');
	mailbox.close();
});

mailboxes('a notification that arrives before wait is called ends the wait', async () => {
	const redis = new MemoryMailbox();
	const mailbox = redis.open();
	const other = mailbox.prepare('other').wait(60_000, 1);
	const prepared = mailbox.prepare('lease');
	redis.add(5001, 'lease', 'private');
	await until('the notification has been read', () => redis.lastPosition === '5001-0');
	assert.is(await prepared.wait(60_000, 5000), 'private');
	redis.add(5002, 'other', 'failed');
	assert.is(await other, 'failed');
	mailbox.close();
});

mailboxes('a mailbox is read with pauses if Redis answers at once with nothing', async () => {
	const redis = new MemoryMailbox();
	redis.answersAtOnce = true;
	const mailbox = redis.open();
	assert.is(await mailbox.prepare('lease').wait(1000, 1), 'unknown');
	// With a pause after each read, there is one read every 100 ms. Without it, there would be thousands.
	assert.ok(redis.reads <= 12, String(redis.reads));
	assert.ok(redis.reads >= 2, String(redis.reads));
	mailbox.close();
});

mailboxes.run();

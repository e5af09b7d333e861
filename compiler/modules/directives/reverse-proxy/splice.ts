/** Joins two byte streams after an upgrade. */
import type { Duplex } from 'node:stream';
import { isJoinable } from '../../../exchange/joinable-stream.ts';

/**
 * Passes bytes both ways with backpressure. When one side ends, the other's writing side ends and the opposite direction
 * continues; when one fails, the other is closed too.
 */
export function spliceStreams(client: Duplex, upstream: Duplex): void {
	if (isJoinable(client) && client.joinTo(upstream)) return;
	client.pipe(upstream);
	upstream.pipe(client);
	follow(client, upstream);
	follow(upstream, client);
}

function follow(side: Duplex, other: Duplex): void {
	side.on('error', () => other.destroy());
	side.on('close', () => {
		// After an orderly end, the other side still receives the data already sent to it.
		if (side.readableEnded && !other.writableFinished && !other.destroyed) other.once('finish', () => other.destroy());
		else other.destroy();
	});
}

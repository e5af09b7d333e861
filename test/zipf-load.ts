/** Sends the requests of a Zipf trace to a server over several concurrent keep-alive connections. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { responseSizeForRank } from './zipf-trace.ts';

const CONNECTION_COUNT = 16;

/** Sends `count` requests over all connections. `ranks` generates their keys. Returns the longest response time in milliseconds. */
export async function sendZipf(port: number, ranks: () => number, count: number): Promise<number> {
	let remaining = count;
	let longest = 0;
	const client = async (): Promise<void> => {
		const socket = connect(port, '127.0.0.1');
		await once(socket, 'connect');
		await new Promise<void>((resolve, reject) => {
			let wanted = -1;
			let rest: Buffer = Buffer.alloc(0);
			let begun = 0;
			const next = (): void => {
				if (remaining-- <= 0) {
					socket.destroy();
					resolve();
					return;
				}
				const rank = ranks();
				wanted = responseSizeForRank(rank);
				begun = performance.now();
				socket.write(`GET /k${rank} HTTP/1.1\r\nHost: example.test\r\n\r\n`);
			};
			socket.on('error', reject);
			socket.on('data', (data: Buffer) => {
				rest = rest.byteLength === 0 ? data : Buffer.concat([rest, data]);
				const end = rest.indexOf('\r\n\r\n');
				if (end === -1 || rest.byteLength < end + 4 + wanted) return;
				if (rest.toString('latin1', 9, 12) !== '200' || rest.byteLength !== end + 4 + wanted) {
					reject(new Error(rest.toString('latin1', 0, end)));
					return;
				}
				rest = Buffer.alloc(0);
				longest = Math.max(longest, performance.now() - begun);
				next();
			});
			next();
		});
	};
	await Promise.all(Array.from({ length: CONNECTION_COUNT }, client));
	return longest;
}

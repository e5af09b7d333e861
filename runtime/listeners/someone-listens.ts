/** Tells a Unix socket that is served from one that a server left behind. */
import { connect } from 'node:net';

/** False when nobody listens on the socket with this path any more. */
export function someoneListens(path: string): Promise<boolean> {
	return new Promise(resolve => {
		const socket = connect(path);
		socket.once('connect', () => {
			socket.destroy();
			resolve(true);
		});
		// Anything but a refusal may be a listener that we cannot see.
		socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code !== 'ECONNREFUSED'));
	});
}

/** Tells whether a Unix socket is in use or was left behind by a server that has exited. */
import { connect } from 'node:net';

/** Resolves to false if no process listens on the socket at this path. */
export function someoneListens(path: string): Promise<boolean> {
	return new Promise(resolve => {
		const socket = connect(path);
		socket.once('connect', () => {
			socket.destroy();
			resolve(true);
		});
		// After any error but ECONNREFUSED, a process may still be listening, such as a server that rejects this user.
		socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code !== 'ECONNREFUSED'));
	});
}

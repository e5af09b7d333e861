/** Finds out how Node's handles are written to. */
import { Socket } from 'node:net';

/**
 * True where Node gives a handle no request of its own for a write, and gets one back if it does not end at once: so it is
 * with Node 26. A handle that expects one must not be called without. Found out by a socket over a handle that is none.
 */
export const WRITES_WITHOUT_REQUEST: boolean = probe();

function probe(): boolean {
	let known = false;
	const handle = {
		writeLatin1String(request: unknown): number {
			known = request === null;
			return 0;
		},
		close(closed?: () => void): void {
			closed?.();
		},
		readStart: ignore,
		readStop: ignore,
		getAsyncId: () => 0,
		ref: ignore,
		unref: ignore,
	};
	try {
		const socket = new Socket({ handle, manualStart: true } as never);
		socket.on('error', ignore);
		socket.write('-', 'latin1');
		socket.destroy();
	} catch {
		return false;
	}
	return known;
}

function ignore(): void {}

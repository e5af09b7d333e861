/** Creates listening sockets for the I/O mode of this thread. */
import { DirectListeningSocket } from './direct-listening-socket.ts';
import { isDirectIo } from './io-mode.ts';
import type { ListeningOwner, ListeningSocket } from './listening-socket.ts';
import { NodeListeningSocket } from './node-listening-socket.ts';

export function createListeningSocket(owner: ListeningOwner): ListeningSocket {
	return isDirectIo() ? new DirectListeningSocket(owner) : new NodeListeningSocket(owner);
}

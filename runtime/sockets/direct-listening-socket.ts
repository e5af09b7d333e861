/** A listening socket that passes on the handles of accepted connections, without creating streams. */
import { interceptHandles, setInheritedOptions, setSocketOptions } from './accepted-handles.ts';
import { type AcceptedSocket, DirectSocket } from './direct-socket.ts';
import type { ListenTarget, TcpKeepAlive } from './listening-socket.ts';
import { NodeListeningSocket } from './node-listening-socket.ts';

/** The listening socket of the `direct` I/O mode. */
export class DirectListeningSocket extends NodeListeningSocket {
	#keepAlive: TcpKeepAlive | undefined = undefined;
	/** True if accepted connections inherit the options of the listening socket. */
	#inherited = false;

	override async listen(target: ListenTarget): Promise<void> {
		await super.listen(target);
		this.configure(this.#keepAlive);
		interceptHandles(this.server, handle => {
			if (this.owner.needsStream) return false;
			this.owner.accepted(new DirectSocket(handle));
			return true;
		});
	}

	override configure(keepAlive: TcpKeepAlive | undefined): void {
		this.#keepAlive = keepAlive;
		this.#inherited = setInheritedOptions(this.server, keepAlive);
	}

	override prepare(socket: AcceptedSocket): void {
		if (!this.#inherited) setSocketOptions(socket, this.#keepAlive);
	}
}

/** A listening socket that passes on the handles of accepted connections, without creating streams. */
import { interceptHandles, setInheritedOptions, setSocketOptions } from './accepted-handles.ts';
import { ConnectionAcceptor } from './connection-acceptor.ts';
import { type AcceptedSocket, DirectSocket } from './direct-socket.ts';
import { descriptorOf } from './duplicate-descriptor.ts';
import type { ListenTarget, TcpKeepAlive } from './listening-socket.ts';
import { NodeListeningSocket } from './node-listening-socket.ts';

/** The listening socket of the `direct` I/O mode. The thread accepts its connections itself; until it can, Node accepts them. */
export class DirectListeningSocket extends NodeListeningSocket {
	#keepAlive: TcpKeepAlive | undefined = undefined;
	/** True if accepted connections inherit the options of the listening socket. */
	#inheritsOptions = false;
	#acceptor: ConnectionAcceptor | undefined = undefined;

	override async listen(target: ListenTarget): Promise<void> {
		await super.listen(target);
		this.configure(this.#keepAlive);
		interceptHandles(this.server, handle => {
			if (this.owner.needsStream) return false;
			this.passOn(new DirectSocket(handle));
			return true;
		});
		if (!this.#inheritsOptions && !this.isUnix) return;
		try {
			this.#acceptor = new ConnectionAcceptor(descriptorOf(this.server), this.owner, this.isUnix);
		} catch {
			// This release of Node does not expose the descriptor, so Node accepts the connections.
		}
	}

	/** True once the thread accepts the connections itself, without Node. */
	get acceptsItself(): boolean {
		return this.#acceptor?.hasTakenOver === true;
	}

	override async acceptWaiting(): Promise<void> {
		if (this.acceptsItself) this.#acceptor!.acceptAll();
		else await super.acceptWaiting();
	}

	override close(): void {
		this.#acceptor?.close();
		super.close();
	}

	override configure(keepAlive: TcpKeepAlive | undefined): void {
		this.#keepAlive = keepAlive;
		this.#inheritsOptions = setInheritedOptions(this.server, keepAlive);
	}

	override prepare(socket: AcceptedSocket): void {
		if (!this.#inheritsOptions) setSocketOptions(socket, this.#keepAlive);
	}
}

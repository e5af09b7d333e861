/**
 * Watches over a successor until its configuration has been confirmed. Meanwhile, this process keeps the listening sockets open
 * without accepting connections, so that it can start another successor if this one fails. Where descriptors cannot be
 * duplicated, the guard only watches.
 */
import { closeSync } from 'node:fs';
import type { InheritedAdmin } from '../../admin/bind.ts';
import type { Inheritance, UnconfirmedTerms } from '../../runtime/main/handover/handover-protocol.ts';
import { KeptSockets } from '../../runtime/main/handover/kept-sockets.ts';
import type { SuccessorProcess } from '../../runtime/main/handover/successor-process.ts';
import { canDuplicateDescriptors, duplicateDescriptor } from '../../runtime/sockets/duplicate-descriptor.ts';

/** Milliseconds after the deadline for a confirmation until a successor that has not rolled back is considered hung. */
const HANG_LIMIT_MS = 10_000;

/** Guards a successor from the moment it serves until it is confirmed or has failed. */
export class SuccessorGuard {
	/** Resolves once no rollback is possible any longer. */
	readonly whenSettled: Promise<void>;
	/**
	 * The sockets kept for another successor; undefined where descriptors cannot be duplicated, so that no other successor can be
	 * started.
	 */
	readonly keptSockets: KeptSockets | undefined;
	#adminSocket: InheritedAdmin | undefined;
	#resolveSettled: () => void = () => {};
	#isSettled = false;
	#hangTimer: NodeJS.Timeout | undefined;
	#successor: SuccessorProcess | undefined;

	/** Duplicates the sockets, before the successor is started. Throws an error with the system's code. */
	constructor(inheritance: Inheritance, adminSocket: InheritedAdmin | undefined) {
		this.whenSettled = new Promise(resolve => {
			this.#resolveSettled = resolve;
		});
		if (!canDuplicateDescriptors()) return;
		this.keptSockets = new KeptSockets(inheritance);
		try {
			this.#adminSocket = adminSocket && { ...adminSocket, descriptor: duplicateDescriptor(adminSocket.descriptor) };
		} catch (error) {
			this.keptSockets.close();
			throw error;
		}
	}

	/** The kept socket of the Admin API; undefined if the successor does not use it. */
	get adminSocket(): InheritedAdmin | undefined {
		return this.#adminSocket;
	}

	/** False once no rollback is possible any longer. */
	get isWatching(): boolean {
		return !this.#isSettled;
	}

	/**
	 * Starts to watch a successor, which already serves. A successor that hangs is killed after the deadline. `onReverting` is called
	 * when it begins to roll back.
	 */
	watch(successor: SuccessorProcess, { until, used }: UnconfirmedTerms, onReverting: () => void): void {
		this.#successor = successor;
		this.keptSockets?.keepOnly(used);
		if (!used.includes('admin')) this.#closeAdmin();
		successor.keepAlive(true);
		successor.onReport = report => {
			if (report === 'reverting') {
				clearTimeout(this.#hangTimer);
				onReverting();
			} else if (report === 'confirmed' || report === 'left') this.settle();
		};
		this.#hangTimer = setTimeout(() => successor.kill(), Math.max(0, until - Date.now()) + HANG_LIMIT_MS);
	}

	/** Stops watching, and closes the sockets. */
	settle(): void {
		if (this.#isSettled) return;
		this.#isSettled = true;
		clearTimeout(this.#hangTimer);
		this.#successor?.keepAlive(false);
		this.keptSockets?.close();
		this.#closeAdmin();
		this.#resolveSettled();
	}

	#closeAdmin(): void {
		if (this.#adminSocket) closeSync(this.#adminSocket.descriptor);
		this.#adminSocket = undefined;
	}
}

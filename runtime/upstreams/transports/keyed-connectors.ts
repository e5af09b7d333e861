/** One upstream with several groups of connections that must not be mixed: by client address, or by TLS server name. */
import type { TransportValues } from '../../../compiler/exchange/leases.ts';
import type { ClientCall } from '../../protocols/http1/client-call.ts';
import type { UpstreamConnector } from './connector.ts';

/** Maximum number of connectors kept. The least recently used one is dropped first. */
const MAX_LINKS = 1024;

/** A connector for each key. */
export class KeyedConnectors implements UpstreamConnector {
	readonly #make: (values: TransportValues | undefined) => UpstreamConnector;
	readonly #connectors = new Map<string, UpstreamConnector>();
	/** True after `close`. */
	#closed = false;

	constructor(make: (values: TransportValues | undefined) => UpstreamConnector) {
		this.#make = make;
	}

	get idle(): number {
		let sum = 0;
		for (const link of this.#connectors.values()) sum += link.idle;
		return sum;
	}

	send(call: ClientCall, fresh: boolean): void {
		const values = call.request.transport;
		const client = values?.client;
		const key = `${values?.serverName ?? ''} ${client?.address ?? ''} ${client?.port ?? 0}`;
		let link = this.#connectors.get(key);
		if (link) {
			// Moves the entry to the end: the first entry is always the least recently used one, which is dropped first.
			this.#connectors.delete(key);
		} else {
			link = this.#make(values);
			if (this.#closed) link.close();
			if (this.#connectors.size >= MAX_LINKS) this.#dropOldest();
		}
		this.#connectors.set(key, link);
		link.send(call, fresh);
	}

	sweep(now: number): void {
		for (const [key, link] of this.#connectors) {
			link.sweep(now);
			if (link.unused) this.#connectors.delete(key);
		}
	}

	/** True if none of the connectors has connections. */
	get unused(): boolean {
		for (const link of this.#connectors.values()) if (!link.unused) return false;
		return true;
	}

	close(): void {
		this.#closed = true;
		for (const link of this.#connectors.values()) link.close();
	}

	#dropOldest(): void {
		for (const [key, link] of this.#connectors) {
			link.close();
			this.#connectors.delete(key);
			return;
		}
	}
}

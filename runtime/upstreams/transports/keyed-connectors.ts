/** One upstream with several groups of connections that must not be mixed: by client address, or by TLS server name. */
import type { TransportValues } from '../../../compiler/exchange/leases.ts';
import type { ClientCall } from '../../protocols/http1/client-call.ts';
import type { UpstreamConnector } from './connector.ts';

/** Maximum number of connectors kept. The least recently used one is dropped first. */
const MAX_CONNECTORS = 1024;

export class KeyedConnectors implements UpstreamConnector {
	readonly #createConnector: (values: TransportValues | undefined) => UpstreamConnector;
	readonly #connectorsByKey = new Map<string, UpstreamConnector>();
	/** True after `close`. */
	#isClosed = false;

	constructor(createConnector: (values: TransportValues | undefined) => UpstreamConnector) {
		this.#createConnector = createConnector;
	}

	get idleCount(): number {
		let sum = 0;
		for (const connector of this.#connectorsByKey.values()) sum += connector.idleCount;
		return sum;
	}

	send(call: ClientCall, wantsNewConnection: boolean): void {
		const transportValues = call.request.transport;
		const client = transportValues?.client;
		const key = `${transportValues?.serverName ?? ''} ${client?.address ?? ''} ${client?.port ?? 0}`;
		let connector = this.#connectorsByKey.get(key);
		if (connector) {
			// Moves the entry to the end: the first entry is always the least recently used one, which is dropped first.
			this.#connectorsByKey.delete(key);
		} else {
			connector = this.#createConnector(transportValues);
			if (this.#isClosed) connector.close();
			if (this.#connectorsByKey.size >= MAX_CONNECTORS) this.#dropOldest();
		}
		this.#connectorsByKey.set(key, connector);
		connector.send(call, wantsNewConnection);
	}

	sweep(now: number): void {
		for (const [key, connector] of this.#connectorsByKey) {
			connector.sweep(now);
			if (connector.isUnused) this.#connectorsByKey.delete(key);
		}
	}

	/** True if none of the connectors has connections. */
	get isUnused(): boolean {
		for (const connector of this.#connectorsByKey.values()) if (!connector.isUnused) return false;
		return true;
	}

	close(): void {
		this.#isClosed = true;
		for (const connector of this.#connectorsByKey.values()) connector.close();
	}

	#dropOldest(): void {
		for (const [key, connector] of this.#connectorsByKey) {
			connector.close();
			this.#connectorsByKey.delete(key);
			return;
		}
	}
}

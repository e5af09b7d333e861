/** The socket of a listener, as named in a document. */
import type { ListenHost } from '../../document/listen-host.ts';

/** The address that a listener binds, and a key that identifies it. */
export interface PlannedSocket {
	/** Identifies the listener across reloads: `tcp/127.0.0.1:8080`, `tcp6/[::]:80`, `unix//run/svc.sock` or `fd/3`. */
	readonly key: string;
	/**
	 * Address to bind; '' for every interface of both address families. Sockets other than TCP have `unix//path` or `fd/3` here.
	 */
	readonly host: string;
	/** The port; 0 for sockets other than TCP. */
	readonly port: number;
	/** True if only IPv6 clients are accepted. */
	readonly only6?: true;
	/** Permissions of a Unix socket's file. */
	readonly mode?: number;
}

/** Returns the socket for a host; `port` applies to TCP only. */
export function plannedSocket(listenHost: ListenHost, port: number): PlannedSocket {
	switch (listenHost.network) {
		case 'tcp': {
			const hostLabel = hostText(listenHost.host);
			if (listenHost.ipv6Only) return { key: `tcp6/${hostLabel}:${port}`, host: listenHost.host, port, only6: true };
			return { key: `tcp/${hostLabel}:${port}`, host: listenHost.host, port };
		}
		case 'unix': {
			const key = `unix/${listenHost.path}`;
			return { key, host: key, port: 0, ...(listenHost.mode === undefined ? {} : { mode: listenHost.mode }) };
		}
		case 'fd':
			return { key: `fd/${listenHost.descriptor}`, host: `fd/${listenHost.descriptor}`, port: 0 };
	}
}

/** Formats a socket for messages, such as `127.0.0.1:8080`, `[::1]:8080`, `:8080` or `unix//run/svc.sock`. */
export function socketText({ host, port }: { readonly host: string; readonly port: number }): string {
	return host.includes('/') ? host : `${hostText(host)}:${port}`;
}

function hostText(host: string): string {
	return host.includes(':') ? `[${host}]` : host;
}

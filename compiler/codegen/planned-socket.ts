/** The socket of a listener, as a document names it. */
import type { ListenHost } from '../document/listen-host.ts';

/** What is bound, and how it is told from others. */
export interface PlannedSocket {
	/** `tcp/127.0.0.1:8080`, `tcp6/[::]:80`, `unix//run/svc.sock`, `fd/3`: identifies the listener across loads. */
	readonly key: string;
	/** Address to bind, '' for every interface of both families; `unix//path` and `fd/3` for what is no TCP port. */
	readonly host: string;
	/** 0 for what is no TCP port. */
	readonly port: number;
	/** IPv6 clients only. */
	readonly only6?: true;
	/** Permissions of a Unix socket's file. */
	readonly mode?: number;
}

/** The socket of a host; the port counts where it is TCP. */
export function plannedSocket(at: ListenHost, port: number): PlannedSocket {
	switch (at.network) {
		case 'tcp': {
			const shown = hostText(at.host);
			if (at.only6) return { key: `tcp6/${shown}:${port}`, host: at.host, port, only6: true };
			return { key: `tcp/${shown}:${port}`, host: at.host, port };
		}
		case 'unix': {
			const key = `unix/${at.path}`;
			return { key, host: key, port: 0, ...(at.mode === undefined ? {} : { mode: at.mode }) };
		}
		case 'fd':
			return { key: `fd/${at.descriptor}`, host: `fd/${at.descriptor}`, port: 0 };
	}
}

/** As messages show it: `127.0.0.1:8080`, `[::1]:8080`, `:8080`, `unix//run/svc.sock`. */
export function socketText({ host, port }: { readonly host: string; readonly port: number }): string {
	return host.includes('/') ? host : `${hostText(host)}:${port}`;
}

function hostText(host: string): string {
	return host.includes(':') ? `[${host}]` : host;
}

/** Checks `settings.servers` beyond what a schema can express: addresses, ranges and uniqueness. */
import type { Report } from '../../diagnostics/diagnostic.ts';
import type { Document } from '../../document/document.ts';
import { parseServerListener, type ServerSettings } from '../../document/server-settings.ts';
import { parseIpRange } from '../../exchange/ip-ranges.ts';

/** Reports invalid items of `settings.servers`, each at `/settings/servers/N`. */
export function checkServers(document: Document, report: Report): void {
	const servers = (document.settings?.servers as readonly ServerSettings[] | undefined) ?? [];
	servers.forEach((server, index) => {
		const serverPointer = `/settings/servers/${index}`;
		const reportProblem = (code: string, pointer: string, message: string): void => {
			report({ code, severity: 'error', pointer: serverPointer + pointer, message });
		};
		const { listener } = server;
		if (listener !== undefined && !parseServerListener(listener)) {
			reportProblem('servers/listener', '/listener', `\`${listener.slice(0, 200)}\` is not a listener address.`);
		}
		if (servers.findIndex(other => other.listener === listener) < index) {
			const message = `cannot have 'servers' global options with duplicate listener addresses: ${listener ?? ''}`;
			reportProblem('servers/listener', listener === undefined ? '' : '/listener', message);
		}
		(server.listener_wrappers ?? []).forEach((listenerWrapper, wrapperIndex) => {
			if (listenerWrapper.wrapper !== 'proxy_protocol') return;
			for (const listName of ['allow', 'deny'] as const) {
				(listenerWrapper[listName] ?? []).forEach((range, itemIndex) => {
					if (parseIpRange(range)) return;
					const message = `\`${range.slice(0, 200)}\` is not an address or range.`;
					reportProblem('value/not-a-range', `/listener_wrappers/${wrapperIndex}/${listName}/${itemIndex}`, message);
				});
			}
		});
	});
}

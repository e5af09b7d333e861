/** Decides whether a listener serves HTTP/3. */
import type { Settings } from '../../document/document.ts';
import { serverSettingsFor } from '../../document/server-settings.ts';
import { protocolsOf } from '../../modules/options/servers/protocols.ts';
import type { ListenerSpec } from './plan.ts';

/**
 * Why a listener serves HTTP/3. `named`: the document lists `h3`. `default`: the document lists no protocols, so HTTP/3 is served
 * where possible.
 */
export type Http3Request = 'named' | 'default';

/**
 * Returns why a listener serves HTTP/3; undefined if it does not. HTTP/3 needs UDP on the same address and port, so only TCP
 * listeners qualify.
 */
export function http3RequestFor(listener: Omit<ListenerSpec, 'sites'>, settings: Settings): Http3Request | undefined {
	if (listener.scheme !== 'https' || listener.host.includes('/')) return undefined;
	const server = serverSettingsFor(settings, listener);
	if (!(listener.protocols ?? protocolsOf(server)).includes('h3')) return undefined;
	return (listener.protocols ?? server.protocols) === undefined ? 'default' : 'named';
}

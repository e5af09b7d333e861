/** Whether a listener speaks HTTP/3. */
import type { Settings } from '../document/document.ts';
import { serverSettingsFor } from '../document/server-settings.ts';
import { DEFAULT_PROTOCOLS } from '../modules/options/servers/protocols.ts';
import type { ListenerSpec } from './plan.ts';

/** `named`: the document says `h3`. `default`: it does not say which protocols are spoken, so HTTP/3 is, where possible. */
export type Http3Wish = 'named' | 'default';

/** Returns whether and why a listener speaks HTTP/3. Only TCP sockets with an address and a port can have UDP beside them. */
export function http3At(listener: Omit<ListenerSpec, 'sites'>, settings: Settings): Http3Wish | undefined {
	if (listener.scheme !== 'https' || listener.host.includes('/')) return undefined;
	const named = listener.protocols ?? serverSettingsFor(settings, listener).protocols;
	if (!(named ?? DEFAULT_PROTOCOLS).includes('h3')) return undefined;
	return named === undefined ? 'default' : 'named';
}

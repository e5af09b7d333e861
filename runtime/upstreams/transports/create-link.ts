/** Makes the link to an upstream that its pool's settings ask for. */
import type { UpstreamAddress } from '../../../compiler/directives/reverse-proxy/upstream-address.ts';
import type { UpstreamSettings } from '../../../compiler/exchange/leases.ts';
import type { ClientOptions } from '../../protocols/http1/client-call.ts';
import { Http1Link } from './http1-link.ts';
import type { IdleLimits, LinkSurroundings, UpstreamLink } from './link.ts';
import { PlainDialer } from './plain-dialer.ts';

/** Bytes of a response's head when nothing is said. */
const MAX_RESPONSE_HEAD = 10_485_760;

/** How idle connections of a pool are kept. */
export function keepAliveOf(settings: UpstreamSettings): IdleLimits {
	return { timeout: settings.keepalive ?? 120_000, count: settings.keepalive_idle_conns ?? 32 };
}

/** Opens nothing yet: the first call does. */
export function createLink(
	address: UpstreamAddress,
	settings: UpstreamSettings,
	surroundings: LinkSurroundings,
): UpstreamLink {
	const limits = keepAliveOf(settings);
	const options: ClientOptions = {
		responseHeaderTimeout: settings.response_header_timeout ?? 0,
		continueTimeout: 1000,
		maxResponseHead: settings.max_response_header ?? MAX_RESPONSE_HEAD,
		keepAlive: limits.timeout > 0 && limits.count > 0,
		pieces: surroundings.pieces,
	};
	const target = address.path === undefined ? { host: address.host, port: address.port } : { path: address.path };
	const dialer = new PlainDialer(target, {
		connectTimeout: settings.connect_timeout ?? 3000,
		readBuffer: surroundings.readBuffer,
	});
	return new Http1Link(dialer, options, limits, () => surroundings.idled());
}

/** Builds the request to an upstream from the received request (RFC 9110 §7.6). */
import type { Exchange, ProtocolName } from './exchange.ts';
import { HeaderList, isSameFieldName } from './header-list.ts';

/** This server's pseudonym in `Via` (RFC 9110 §7.6.3). */
export const VIA_PSEUDONYM = 'svc';

/** The value of `Via` for a message received over each protocol. */
export const VIA_BY_PROTOCOL: { readonly [protocol in ProtocolName]: string } = {
	'HTTP/1.0': `1.0 ${VIA_PSEUDONYM}`,
	'HTTP/1.1': `1.1 ${VIA_PSEUDONYM}`,
	'HTTP/2.0': `2.0 ${VIA_PSEUDONYM}`,
	'HTTP/3.0': `3.0 ${VIA_PSEUDONYM}`,
};

/** The fields to send to an upstream, and the protocol to which the client requested an upgrade. */
export interface ForwardedFields {
	readonly headers: HeaderList;
	readonly upgrade: string | undefined;
}

/**
 * Copies the end-to-end fields of the received request, with `Host` first, and adds `X-Forwarded-*` and `Via`.
 * @param isPeerTrusted True if the `X-Forwarded-*` fields that the peer sent are trusted.
 * @param upstreamHost `Host` for a request that was received without one (HTTP/1.0).
 * @param useUpstreamHost True to replace the received host with `upstreamHost`, so that `Host` names the host that TLS verifies.
 * @param addForwardedField True to add `Forwarded` as well, after the elements that a trusted peer sent.
 */
export function forwardedFields(
	x: Exchange,
	isPeerTrusted: boolean,
	upstreamHost: string,
	useUpstreamHost: boolean,
	addForwardedField: boolean,
): ForwardedFields {
	const { request } = x;
	const receivedHeaders = request.headers;
	const namesAndValues: string[] = [
		'Host',
		useUpstreamHost || request.authority === '' ? upstreamHost : request.authority,
	];
	let connectionOptions: string | undefined;
	let requestedUpgrade: string | undefined;
	let acceptsTrailers = false;
	let forwardedFor: string | undefined;
	let forwardedProto: string | undefined;
	let forwardedHost: string | undefined;
	let receivedForwarded: string | undefined;
	for (let i = 0, size = receivedHeaders.size; i < size; i++) {
		const name = receivedHeaders.nameAt(i);
		switch (name.length) {
			case 9:
				if (addForwardedField && isSameFieldName(name, 'forwarded')) {
					const value = receivedHeaders.valueAt(i);
					receivedForwarded = receivedForwarded === undefined ? value : `${receivedForwarded}, ${value}`;
					continue;
				}
				break;
			case 2:
				if (isSameFieldName(name, 'te')) {
					acceptsTrailers ||= /(?:^|,)[ \t]*trailers[ \t]*(?:,|$)/i.test(receivedHeaders.valueAt(i));
					continue;
				}
				break;
			case 4:
				// `Host` is skipped, because `request.authority` stands for it.
				if (isSameFieldName(name, 'host')) continue;
				break;
			case 7:
				if (isSameFieldName(name, 'upgrade')) {
					requestedUpgrade =
						requestedUpgrade === undefined
							? receivedHeaders.valueAt(i)
							: `${requestedUpgrade}, ${receivedHeaders.valueAt(i)}`;
					continue;
				}
				break;
			case 10:
				if (isSameFieldName(name, 'connection')) {
					connectionOptions =
						connectionOptions === undefined
							? receivedHeaders.valueAt(i)
							: `${connectionOptions}, ${receivedHeaders.valueAt(i)}`;
					continue;
				}
				if (isSameFieldName(name, 'keep-alive')) continue;
				break;
			case 14:
				if (isSameFieldName(name, 'content-length')) continue;
				break;
			case 15:
				if (isSameFieldName(name, 'x-forwarded-for')) {
					const value = receivedHeaders.valueAt(i);
					forwardedFor = forwardedFor === undefined ? value : `${forwardedFor}, ${value}`;
					continue;
				}
				break;
			case 16:
				if (isSameFieldName(name, 'proxy-connection')) continue;
				if (isSameFieldName(name, 'x-forwarded-host')) {
					forwardedHost = receivedHeaders.valueAt(i);
					continue;
				}
				break;
			case 17:
				if (isSameFieldName(name, 'transfer-encoding')) continue;
				if (isSameFieldName(name, 'x-forwarded-proto')) {
					forwardedProto = receivedHeaders.valueAt(i);
					continue;
				}
				break;
			case 18:
				if (isSameFieldName(name, 'proxy-authenticate')) continue;
				break;
			case 19:
				if (isSameFieldName(name, 'proxy-authorization')) continue;
				break;
		}
		namesAndValues.push(name, receivedHeaders.valueAt(i));
	}
	const headers = new HeaderList(namesAndValues);
	const wantsUpgrade = connectionOptions !== undefined && removeConnectionOptions(connectionOptions, headers);
	// These fields are added after `removeConnectionOptions`, so that a client's `Connection` field cannot remove them.
	if (acceptsTrailers) headers.add('TE', 'trailers');
	addXForwardedFields(x, headers, isPeerTrusted, forwardedFor, forwardedProto, forwardedHost);
	if (addForwardedField) headers.add('Forwarded', forwardedValue(x, isPeerTrusted ? receivedForwarded : undefined));
	headers.add('Via', VIA_BY_PROTOCOL[x.protocol]);
	return {
		headers,
		upgrade:
			wantsUpgrade && requestedUpgrade !== undefined && mayUpgrade(x, requestedUpgrade) ? requestedUpgrade : undefined,
	};
}

/**
 * Removes options from the request's `Connection`, so that the fields of these names are forwarded. Whoever sets a field on the
 * request does this: a client must not be able to have the field removed by naming it in `Connection`.
 * @param lowerNames Returns the names in lower case. It is called only if `Connection` has unusual options.
 */
export function removeFromConnection(headers: HeaderList, lowerNames: () => readonly string[]): void {
	const connection = headers.getCombined('connection');
	if (connection === undefined || isUsualConnection(connection)) return;
	const names = lowerNames();
	const options = connection.split(',').map(option => option.trim());
	const otherOptions = options.filter(option => !names.includes(option.toLowerCase()));
	if (otherOptions.length < options.length) headers.set('Connection', otherOptions.join(', '));
}

/** Reports whether a `Connection` is one of the values that nearly all clients send. */
function isUsualConnection(connection: string): boolean {
	return connection === 'keep-alive' || connection === 'close' || connection === 'Upgrade';
}

/** Removes the fields that `Connection` names. Returns true if it names `upgrade`. */
function removeConnectionOptions(connection: string, headers: HeaderList): boolean {
	if (isUsualConnection(connection)) return connection === 'Upgrade';
	let wantsUpgrade = false;
	for (const part of connection.toLowerCase().split(',')) {
		const option = part.trim();
		if (option === 'upgrade') wantsUpgrade = true;
		else if (option !== '' && option !== 'close' && option !== 'keep-alive' && option !== 'host')
			headers.delete(option);
	}
	return wantsUpgrade;
}

/**
 * Reports whether an upgrade is forwarded. A request with a body is not upgraded, because the new protocol would begin in the
 * middle of the body. An upgrade to HTTP/2 is not forwarded, because the requests on the upgraded connection would bypass the
 * handlers (RFC 9113 §3.1).
 */
function mayUpgrade(x: Exchange, upgrade: string): boolean {
	return x.request.body === null && x.protocol !== 'HTTP/1.0' && !/(?:^|[\s,])(?:h2c?|http)(?:[\s,/]|$)/i.test(upgrade);
}

function addXForwardedFields(
	x: Exchange,
	headers: HeaderList,
	isPeerTrusted: boolean,
	receivedFor: string | undefined,
	receivedProto: string | undefined,
	receivedHost: string | undefined,
): void {
	const peer = x.connection.remoteAddress;
	if (!isPeerTrusted) {
		if (peer === '') return;
		headers.add('X-Forwarded-For', peer);
		headers.add('X-Forwarded-Proto', x.request.scheme);
		headers.add('X-Forwarded-Host', x.request.authority);
		return;
	}
	const addresses = forwardedForValue(receivedFor, peer);
	if (addresses !== '') headers.add('X-Forwarded-For', addresses);
	headers.add('X-Forwarded-Proto', lastItem(receivedProto) ?? x.request.scheme);
	headers.add('X-Forwarded-Host', lastItem(receivedHost) ?? x.request.authority);
}

/** Returns the value of `X-Forwarded-For`: the received addresses, followed by the peer's address. */
function forwardedForValue(received: string | undefined, peer: string): string {
	return received === undefined || received === '' ? peer : peer === '' ? received : `${received}, ${peer}`;
}

/**
 * Functions that return the `X-Forwarded-*` values to send, by lower-case name, for code that needs these values before the request
 * is built.
 */
export const FORWARDED_VALUE_GETTERS: ReadonlyMap<string, (x: Exchange, isPeerTrusted: boolean) => string> = new Map([
	[
		'x-forwarded-for',
		(x, isPeerTrusted) =>
			forwardedForValue(
				isPeerTrusted ? x.request.headers.getCombined('x-forwarded-for') : undefined,
				x.connection.remoteAddress,
			),
	],
	[
		'x-forwarded-proto',
		(x, isPeerTrusted) =>
			(isPeerTrusted ? lastItem(x.request.headers.getAll('x-forwarded-proto').at(-1)) : undefined) ?? x.request.scheme,
	],
	[
		'x-forwarded-host',
		(x, isPeerTrusted) =>
			(isPeerTrusted ? lastItem(x.request.headers.getAll('x-forwarded-host').at(-1)) : undefined) ??
			x.request.authority,
	],
]);

/** Returns the value of `Forwarded`: the elements of earlier hops, followed by one for this hop (RFC 7239 §4). */
function forwardedValue(x: Exchange, earlierElements: string | undefined): string {
	const peer = x.connection.remoteAddress;
	const peerNode = peer === '' ? 'unknown' : peer.includes(':') ? `"[${peer}]"` : peer;
	const host = x.request.authority.replace(/["\\]/g, '');
	const element = `for=${peerNode};host="${host}";proto=${x.request.scheme}`;
	return earlierElements === undefined || earlierElements === '' ? element : `${earlierElements}, ${element}`;
}

function lastItem(value: string | undefined): string | undefined {
	if (value === undefined) return undefined;
	const item = value.slice(value.lastIndexOf(',') + 1).trim();
	return item === '' ? undefined : item;
}

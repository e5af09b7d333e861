/** The requirements of RFC 9110 and RFC 9112 for a proxy or gateway. */
import { CLOSE, FINAL_REQUEST, PROXIED_GET_HEAD, PROXIED_POST_HEAD, type Requirement } from './requirement.ts';

const row = (
	section: string,
	level: Requirement['level'],
	says: string,
	rest: Omit<Requirement, 'section' | 'level' | 'says' | 'who'>,
): Requirement => ({ section, level, who: 'proxy', says, ...rest });

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n';

/** The requirements for proxies, in the order of the RFCs. */
export const PROXY_REQUIREMENTS: readonly Requirement[] = [
	row('9112 §3.2.1', 'MUST', 'forward the target as received, including an empty query', {
		send: `GET /up/%7Ea%2Fb?c=%20&d? HTTP/1.1\r\nHost: a\r\n${CLOSE}\r\n`,
		upstreamHas: [/^GET \/up\/%7Ea%2Fb\?c=%20&d\? HTTP\/1\.1\r\n/],
	}),
	row('9112 §2.3', 'MUST', 'send its own version', {
		send: 'GET /up/x HTTP/1.0\r\nHost: a\r\n\r\n',
		upstreamHas: [/^GET \/up\/x HTTP\/1\.1\r\n/],
	}),
	row('9112 §3.2', 'MUST', 'send one Host', {
		send: `${PROXIED_GET_HEAD}${CLOSE}\r\n`,
		upstreamHas: ['Host: a.example\r\n'],
		upstreamLacks: [/\r\nHost:[\s\S]*\r\nHost:/],
	}),
	row('9110 §7.6.1', 'MUST', 'remove Connection and the fields that it names', {
		send: `${PROXIED_GET_HEAD}Connection: X-Hop, close\r\nX-Hop: 1\r\nX-End: 2\r\n\r\n`,
		upstreamHas: ['X-End: 2\r\n'],
		upstreamLacks: ['X-Hop', 'close'],
	}),
	row('9110 §7.6.1', 'SHOULD', 'remove hop-by-hop fields that Connection does not name', {
		send: `${PROXIED_GET_HEAD}${CLOSE}Keep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\nUpgrade: x\r\n\r\n`,
		upstreamLacks: ['Keep-Alive', 'Proxy-Connection', 'Upgrade'],
	}),
	row('9110 §7.6.1', 'MUST', 'do the same with the fields of a response', {
		send: `${PROXIED_GET_HEAD}${CLOSE}\r\n`,
		upstream: `${OK}Connection: X-Hop\r\nX-Hop: 1\r\nX-End: 2\r\nKeep-Alive: timeout=5\r\n\r\nok`,
		has: ['X-End: 2\r\n'],
		lacks: ['X-Hop', 'Keep-Alive'],
	}),
	row('9110 §7.6.1', 'MUST NOT', 'let Connection remove framing and routing fields', {
		send: `${PROXIED_POST_HEAD}Connection: Content-Length, Host, close\r\nContent-Length: 3\r\n\r\nabc`,
		upstreamHas: ['Host: a.example\r\n', 'Content-Length: 3\r\n', /\r\n\r\nabc$/],
	}),
	row('9110 §7.6.3', 'MUST', 'add itself to Via', {
		send: `${PROXIED_GET_HEAD}${CLOSE}\r\n`,
		upstreamHas: [/\r\nVia: 1\.1 \S+\r\n/],
	}),
	row('9110 §10.1.4', 'MUST', 'not forward TE unchanged; `trailers` may stay if named in Connection', {
		send: `${PROXIED_GET_HEAD}Connection: TE, close\r\nTE: gzip, trailers\r\n\r\n`,
		upstreamLacks: [/TE: gzip/],
	}),
	row('9110 §5.3', 'MUST NOT', 'change the order of fields with the same name', {
		send: `${PROXIED_GET_HEAD}${CLOSE}X-A: 1\r\nX-B: 0\r\nX-A: 2\r\n\r\n`,
		upstreamHas: [/X-A: 1\r\n[\s\S]*X-A: 2\r\n/],
	}),
	row('9110 §5.1', 'MUST', 'forward unknown fields', {
		send: `${PROXIED_GET_HEAD}${CLOSE}X-New: 1\r\n\r\n`,
		upstream: `${OK}X-Newer: 2\r\n\r\nok`,
		upstreamHas: ['X-New: 1\r\n'],
		has: ['X-Newer: 2\r\n'],
	}),
	row('9112 §6.3', 'MUST', 'frame the upstream request according to the received framing', {
		send: `${PROXIED_POST_HEAD}${CLOSE}Content-Length: 3\r\n\r\nabc`,
		upstreamHas: ['Content-Length: 3\r\n', /\r\n\r\nabc$/],
		upstreamLacks: ['Transfer-Encoding'],
	}),
	row('9112 §7.1', 'MUST', 're-frame a chunked request', {
		send: `${PROXIED_POST_HEAD}${CLOSE}Transfer-Encoding: chunked\r\n\r\n1;x=y\r\na\r\n2\r\nbc\r\n0\r\n\r\n`,
		upstreamHas: ['Transfer-Encoding: chunked\r\n', /0\r\n\r\n$/],
		upstreamLacks: ['x=y', 'Content-Length'],
	}),
	row('9112 §7.1.2', 'MAY', 'forward or discard request trailers, but never merge them', {
		send: `${PROXIED_POST_HEAD}${CLOSE}Transfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n1\r\na\r\n0\r\nX-T: t\r\n\r\n`,
		statuses: [200],
		upstreamLacks: [/X-T: t\r\n[\s\S]*\r\n1\r\na/],
	}),
	row('9112 §7.1.2', 'MAY', 'forward response trailers', {
		send: `${PROXIED_GET_HEAD}${CLOSE}TE: trailers\r\n\r\n`,
		upstream: 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n2\r\nok\r\n0\r\nX-T: t\r\n\r\n',
		has: [/2\r\nok\r\n0\r\nX-T: t\r\n\r\n$/],
	}),
	row('9110 §6.5.1', 'MUST NOT', 'forward framing and routing fields from response trailers', {
		send: `${PROXIED_GET_HEAD}${CLOSE}\r\n`,
		upstream: 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nContent-Length: 9\r\n\r\n',
		lacks: ['Content-Length: 9'],
	}),
	row('9110 §15.2', 'MUST', 'forward 1xx responses', {
		send: `${PROXIED_GET_HEAD}${CLOSE}\r\n`,
		upstream: `HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n${OK}\r\nok`,
		statuses: [103, 200],
		has: ['Link: </a>; rel=preload\r\n'],
	}),
	row('9110 §15.2', 'MUST', 'not forward a 100 that the client did not ask for', {
		send: `${PROXIED_GET_HEAD}${CLOSE}\r\n`,
		upstream: `HTTP/1.1 100 Continue\r\n\r\n${OK}\r\nok`,
		statuses: [200],
	}),
	row('9110 §15.2.2', 'MUST', 'refuse an unsolicited 101', {
		send: `${PROXIED_GET_HEAD}${CLOSE}\r\n`,
		upstream: 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n',
		statuses: [502],
	}),
	row('9110 §7.8', 'MUST', 'forward an upgrade as its own, with Upgrade and the connection option', {
		send: `${PROXIED_GET_HEAD}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
		upstream: 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nstream',
		upstreamCloses: true,
		statuses: [101],
		has: ['Upgrade: websocket\r\n', 'Connection: Upgrade\r\n', /\r\n\r\nstream$/],
		upstreamHas: ['Connection: Upgrade\r\n', 'Upgrade: websocket\r\n'],
	}),
	row('9110 §9.3.2', 'MUST', 'forward the fields of a response to HEAD, without a body', {
		send: `HEAD /up/x HTTP/1.1\r\nHost: a\r\n\r\n${FINAL_REQUEST}`,
		upstream: 'HTTP/1.1 200 OK\r\nContent-Length: 77\r\n\r\n',
		statuses: [200, 200],
		has: ['Content-Length: 77\r\n'],
	}),
	row('9110 §15.4.5', 'MUST', 'forward a 304 without a body', {
		send: `${PROXIED_GET_HEAD}\r\n${FINAL_REQUEST}`,
		upstream: 'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\nContent-Length: 12\r\n\r\n',
		statuses: [304, 200],
		has: ['ETag: "a"\r\n'],
	}),
	row('9110 §15.6.3', 'MUST', "answer 502 if the upstream's response is invalid", {
		send: `${PROXIED_GET_HEAD}${CLOSE}\r\n`,
		upstream: 'SSH-2.0-OpenSSH\r\n',
		statuses: [502],
	}),
	row('9110 §6.6.1', 'MUST', 'add Date to a response without one, and keep an existing one', {
		send: `${PROXIED_GET_HEAD}${CLOSE}\r\n`,
		upstream: `${OK}Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\nok`,
		has: ['Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n'],
		lacks: [/Date: [\s\S]*Date: /],
	}),
	row('9110 §10.1.1', 'MUST', 'answer an expectation itself, or forward it and wait', {
		send: [`${PROXIED_POST_HEAD}${CLOSE}Expect: 100-continue\r\nContent-Length: 3\r\n\r\n`, 'abc'],
		upstreamContinues: true,
		statuses: [100, 200],
		upstreamHas: [/abc$/],
	}),
	row('9112 §9.2', 'MUST', 'match responses to their requests', {
		send: `${PROXIED_GET_HEAD}\r\nGET /up/y HTTP/1.1\r\nHost: a\r\n${CLOSE}\r\n`,
		upstream: [`${OK}X-N: 1\r\n\r\nok`, `${OK}X-N: 2\r\n\r\nok`],
		has: [/X-N: 1\r\n[\s\S]*X-N: 2\r\n/],
		upstreamRequests: 2,
	}),
	row('9112 §11.1', 'MUST', 'not let a line end in a response field split the response', {
		send: `${PROXIED_GET_HEAD}${CLOSE}\r\n`,
		upstream: `HTTP/1.1 200 OK\r\nX: a\rX-Split: b\r\nContent-Length: 2\r\n\r\nok`,
		statuses: [502],
		lacks: ['X-Split'],
	}),
];

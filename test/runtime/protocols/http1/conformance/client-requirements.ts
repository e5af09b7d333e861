/** The requirements of RFC 9110 and RFC 9112 for a client, which is the server's role towards upstreams. */
import { CLOSE, FINAL_REQUEST, PROXIED_GET_HEAD, type Requirement } from './requirement.ts';

const row = (
	section: string,
	level: Requirement['level'],
	says: string,
	upstream: string,
	rest: Omit<Requirement, 'section' | 'level' | 'says' | 'who' | 'send' | 'upstream'> & { readonly send?: string },
): Requirement => ({ section, level, who: 'client', says, upstream, send: `${PROXIED_GET_HEAD}${CLOSE}\r\n`, ...rest });

const HEAD = 'HTTP/1.1 200 OK\r\n';

/** The requirements for clients, in the order of the RFCs. */
export const CLIENT_REQUIREMENTS: readonly Requirement[] = [
	row(
		'9112 §2.3',
		'MUST',
		'refuse a response with another major version',
		'HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n',
		{
			statuses: [502],
		},
	),
	row(
		'9112 §4',
		'MUST',
		'accept a status line without a reason phrase',
		'HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok',
		{
			statuses: [200],
			has: [/ok$/],
		},
	),
	row('9112 §4', 'SHOULD', 'ignore the reason phrase', 'HTTP/1.1 200 Never Mind\r\nContent-Length: 2\r\n\r\nok', {
		has: [/^HTTP\/1\.1 200 OK\r\n/],
	}),
	row(
		'9110 §15',
		'MUST',
		'treat an unknown status as x00 of its class',
		'HTTP/1.1 299 X\r\nContent-Length: 2\r\n\r\nok',
		{
			statuses: [299],
			has: [/ok$/],
		},
	),
	row(
		'9110 §15',
		'SHOULD',
		'treat a status outside 100 to 599 as an error',
		'HTTP/1.1 999 X\r\nContent-Length: 0\r\n\r\n',
		{
			statuses: [502],
		},
	),
	row('9112 §5.1', 'MUST', 'not forward whitespace before a colon', `${HEAD}X : a\r\nContent-Length: 0\r\n\r\n`, {
		statuses: [502],
	}),
	row('9112 §5.2', 'MUST', 'refuse or unfold line folding', `${HEAD}X: a\r\n b\r\nContent-Length: 0\r\n\r\n`, {
		statuses: [502],
	}),
	row('9112 §2.2', 'MUST NOT', 'accept a bare LF as the end of a head', `HTTP/1.1 200 OK\nContent-Length: 0\n\n`, {
		statuses: [502],
	}),
	row(
		'9112 §6.1',
		'MUST',
		'not trust a message with both Transfer-Encoding and Content-Length',
		`${HEAD}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
		{
			statuses: [502],
		},
	),
	row(
		'9112 §6.1',
		'MUST',
		'not trust Transfer-Encoding in HTTP/1.0',
		'HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
		{
			statuses: [502],
		},
	),
	row('9112 §6.3', 'MUST', 'refuse an invalid length', `${HEAD}Content-Length: 2x\r\n\r\nok`, { statuses: [502] }),
	row('9112 §6.3', 'MUST', 'refuse differing lengths', `${HEAD}Content-Length: 2\r\nContent-Length: 3\r\n\r\nok`, {
		statuses: [502],
	}),
	row('9112 §6.3', 'MAY', 'accept a repeated identical length', `${HEAD}Content-Length: 2, 2\r\n\r\nok`, {
		statuses: [200],
		has: ['Content-Length: 2\r\n'],
	}),
	row(
		'9112 §6.3',
		'MUST',
		'read until the connection closes if nothing frames the response',
		'HTTP/1.1 200 OK\r\n\r\nuntil the end',
		{
			upstreamCloses: true,
			has: [/until the end/],
		},
	),
	row(
		'9112 §6.3',
		'MUST',
		'treat responses to HEAD as having no body, whatever they declare',
		`${HEAD}Content-Length: 50\r\n\r\n`,
		{
			send: `HEAD /up/x HTTP/1.1\r\nHost: a\r\n\r\n${FINAL_REQUEST}`,
			statuses: [200, 200],
		},
	),
	row('9112 §6.3', 'MUST', 'treat 204 as having no body', 'HTTP/1.1 204 No Content\r\n\r\n', {
		send: `${PROXIED_GET_HEAD}\r\n${FINAL_REQUEST}`,
		statuses: [204, 200],
	}),
	row(
		'9112 §7.1',
		'MUST',
		'decode the chunked coding, including extensions',
		`${HEAD}Transfer-Encoding: chunked\r\n\r\n2;a=b\r\nok\r\n0\r\n\r\n`,
		{
			statuses: [200],
			has: ['ok'],
			lacks: ['a=b'],
		},
	),
	row('9112 §8', 'MUST', 'show the client that a response was truncated', `${HEAD}Content-Length: 10\r\n\r\nok`, {
		upstreamCloses: true,
		has: ['Content-Length: 10\r\n', /\r\n\r\nok$/],
	}),
	row(
		'9112 §8',
		'MUST',
		'not terminate a truncated chunked response',
		`${HEAD}Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n`,
		{
			upstreamCloses: true,
			lacks: [/0\r\n\r\n$/],
		},
	),
	row(
		'9112 §9.3',
		'MUST',
		'not reuse a connection that says close',
		`${HEAD}Connection: close\r\nContent-Length: 2\r\n\r\nok`,
		{
			send: `${PROXIED_GET_HEAD}\r\nGET /up/y HTTP/1.1\r\nHost: a\r\n${CLOSE}\r\n`,
			upstreamCloses: true,
			statuses: [200, 200],
		},
	),
	row(
		'9112 §9.2',
		'MUST NOT',
		'take unsolicited bytes for a response',
		`${HEAD}Content-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nX-Stray: 1\r\nContent-Length: 5\r\n\r\nstray`,
		{
			send: `${PROXIED_GET_HEAD}\r\nGET /up/y HTTP/1.1\r\nHost: a\r\n${CLOSE}\r\n`,
			statuses: [200, 200],
			lacks: ['X-Stray', 'stray'],
		},
	),
];

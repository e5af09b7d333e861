/** Fake exchanges without a connection, for tests of the handler graph. */
import { buildSite } from '../../compiler/codegen/build-site.ts';
import type { BuiltSite } from '../../compiler/codegen/built-site.ts';
import { UNKNOWN_HOST_FACTS } from '../../compiler/codegen/placeholders/index.ts';
import type { HostFacts } from '../../compiler/codegen/placeholders/placeholder.ts';
import type { Settings, Site, Step } from '../../compiler/document/document.ts';
import { parseAuthority } from '../../compiler/exchange/authority.ts';
import { type Body, isStream } from '../../compiler/exchange/body.ts';
import { type ConnectionInfo, Exchange, type ProtocolName, Request } from '../../compiler/exchange/exchange.ts';
import { HeaderList } from '../../compiler/exchange/header-list.ts';
import type { Leases } from '../../compiler/exchange/leases.ts';

/**
 * The properties of a request that a test sets; the default is `GET http://example.test/` from 127.0.0.1:40000 to
 * 127.0.0.1:9080.
 */
export interface RequestFields {
	method?: string;
	/** The request target: path and query, as in the request line. */
	target?: string;
	authority?: string;
	headers?: readonly (readonly [name: string, value: string])[];
	body?: Body;
	scheme?: 'http' | 'https';
	protocol?: ProtocolName;
	connection?: Partial<ConnectionInfo>;
}

/** An exchange that records interim responses. */
export class FakeExchange extends Exchange {
	readonly informed: { status: number; headers: HeaderList }[] = [];

	override sendInterim(status: number, headers: HeaderList): void {
		this.informed.push({ status, headers });
	}
}

export function fakeExchange(fields: RequestFields = {}): FakeExchange {
	const target = fields.target ?? '/';
	const mark = target.indexOf('?');
	const authority = fields.authority ?? 'example.test';
	const received = {
		method: fields.method ?? 'GET',
		path: mark === -1 ? target : target.slice(0, mark),
		query: mark === -1 ? undefined : target.slice(mark + 1),
		authority,
	};
	const headers = new HeaderList((fields.headers ?? []).flat());
	const host = parseAuthority(authority)?.host ?? '';
	const request = new Request(received, fields.scheme ?? 'http', host, headers, fields.body ?? null);
	const connection: ConnectionInfo = {
		remoteAddress: '127.0.0.1',
		remotePort: 40000,
		localAddress: '127.0.0.1',
		localPort: 9080,
		tls: undefined,
		...fields.connection,
	};
	const transport = { sendInterim: () => {}, watch: () => {} };
	return new FakeExchange(fields.protocol ?? 'HTTP/1.1', connection, received, request, transport, performance.now());
}

/** Provides no leases, except access logs that discard their entries. */
export const NO_LEASES: Leases = {
	lease(kind) {
		if (kind === 'access_log') return { record() {} } as never;
		throw new Error(`the test provides no lease for ${kind}`);
	},
};

/** The parts of a test site other than its steps. */
export interface SiteFields {
	errors?: Site['errors'];
	settings?: Settings;
	facts?: HostFacts;
	leases?: Leases;
}

export function buildTestSite(pipeline: readonly Step[], fields: SiteFields = {}): BuiltSite {
	const site: Site = { addresses: [':9080'], pipeline, ...(fields.errors ? { errors: fields.errors } : {}) };
	return buildSite(site, 0, {
		settings: fields.settings ?? {},
		upstreams: {},
		routes: {},
		leases: fields.leases ?? NO_LEASES,
		facts: fields.facts ?? UNKNOWN_HOST_FACTS,
	});
}

/** Sends a request through steps and returns the exchange. */
export async function serveRequest(
	pipeline: readonly Step[],
	request: RequestFields = {},
	fields: SiteFields = {},
): Promise<FakeExchange> {
	const x = fakeExchange(request);
	await buildTestSite(pipeline, fields).runSite(x);
	return x;
}

/** Returns the text of a response body that is already complete. */
export function bodyText(x: Exchange): string {
	const { body } = x.response;
	if (body === null) return '';
	if (typeof body === 'string') return body;
	if (!isStream(body)) return Buffer.from(body).toString('utf8');
	const pieces: Buffer[] = [];
	for (let piece = body.pull(); piece !== null; piece = body.pull()) {
		if (piece instanceof Promise) throw new Error('the body is still pending');
		pieces.push(Buffer.from(piece));
	}
	return Buffer.concat(pieces).toString('utf8');
}

/** Returns the response fields as `Name: value` lines. */
export function responseLines(x: Exchange): string[] {
	return [...x.response.headers].map(([name, value]) => `${name}: ${value}`);
}

/** A site compiled from configuration text, served by our own engine on a free port, with real upstream pools. */
import { readFileSync } from 'node:fs';
import { buildSite } from '../../../../../compiler/codegen/build-site.ts';
import { UNKNOWN_HOST_FACTS } from '../../../../../compiler/codegen/placeholders/index.ts';
import { compile } from '../../../../../compiler/compiler.ts';
import type { ConfigInput } from '../../../../../compiler/dialects/dialect.ts';
import type { Exchange } from '../../../../../compiler/exchange/exchange.ts';
import type { FileReader } from '../../../../../compiler/exchange/leases.ts';
import type { UpstreamSettings } from '../../../../../compiler/modules/directives/reverse-proxy/upstream-pool.ts';
import { ReadError, type Reader } from '../../../../../compiler/source/reader.ts';
import type { PoolDeps } from '../../../../../runtime/upstreams/pool-deps.ts';
import { createUpstreamPool, type OwnedUpstreamPool } from '../../../../../runtime/upstreams/upstream-pool.ts';
import { serve, type WireServer } from '../../../../runtime/protocols/http1/wire.ts';

/** A reader without files. */
export const NO_FILES: Reader = {
	readText: path => {
		throw new ReadError('ENOENT', path);
	},
	readBytes: path => {
		throw new ReadError('ENOENT', path);
	},
	list: path => {
		throw new ReadError('ENOENT', path);
	},
	kind: () => undefined,
	env: () => undefined,
	workingDirectory: '/',
};

/** A reader for the certificate files that pools name. */
const CERTIFICATES: Reader = { ...NO_FILES, readBytes: path => readFileSync(path) };

/** A site that is being served. */
export interface ProxiedSite {
	readonly port: number;
	readonly exchanges: readonly Exchange[];
	readonly pools: readonly OwnedUpstreamPool[];
	close(): Promise<void>;
}

/** Compiles `lines` as a site of a Configfile, or of another dialect if given, and serves it. */
export async function proxiedSite(
	lines: string,
	before = '',
	files?: FileReader,
	format: 'configfile' | 'compatfile' = 'configfile',
	poolDeps?: PoolDeps,
): Promise<ProxiedSite> {
	const name = format === 'configfile' ? 'Configfile' : 'Compatfile';
	return served({ format, text: `${before}\n:8080 {\n${lines}\n}\n`, name }, files, poolDeps);
}

/** Serves the first site of a JSON document. */
export function proxiedDocument(document: object): Promise<ProxiedSite> {
	return served({ format: 'json', text: JSON.stringify(document), name: 'config.json' });
}

async function served(input: ConfigInput, files?: FileReader, poolDeps?: PoolDeps): Promise<ProxiedSite> {
	const { document, diagnostics } = compile(input, CERTIFICATES);
	if (!document) throw new Error(diagnostics.map(({ message }) => message).join('\n'));
	const pools: OwnedUpstreamPool[] = [];
	const site = buildSite(document.sites![0]!, 0, {
		settings: document.settings ?? {},
		upstreams: document.upstreams ?? {},
		routes: {},
		facts: UNKNOWN_HOST_FACTS,
		leases: {
			lease(kind, settings) {
				if (kind === 'files' && files) return files as never;
				if (kind !== 'upstreams') return { record() {} } as never;
				const pool = createUpstreamPool(settings as UpstreamSettings, undefined, poolDeps);
				pools.push(pool);
				return pool as never;
			},
		},
	});
	const server: WireServer = await serve(site.runSite);
	return {
		port: server.port,
		exchanges: server.exchanges,
		pools,
		async close() {
			await server.stop();
			for (const pool of pools) pool.close();
		},
	};
}

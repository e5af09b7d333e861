/**
 * Recognizes configurations that use something which a machine may be unable to provide, such as a folder for a cache or a log.
 * `svc validate` tries to provide it.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { compile } from '../../../compiler/compiler.ts';
import { diskReader } from '../../../runtime/compile/disk-reader.ts';
import { usesFallibleLeases } from '../../../runtime/preflight/fallible-leases.ts';

const HASH = '$2b$04$abcdefghijklmnopqrstuuq/K2hpGPDdJlgPKSXRxKVK6hW9GLuC2';

function isFallible(text: string): boolean {
	const { plan, diagnostics } = compile({ format: 'configfile', text, name: 'Configfile' }, diskReader('/'));
	const errors = diagnostics.filter(({ severity }) => severity === 'error');
	assert.ok(plan, JSON.stringify(errors.map(({ message }) => message)));
	return usesFallibleLeases(plan, { workingDirectory: '/', environment: {} });
}

const site = (lines: string): string => `http://a.test {\n${lines}\n}\n`;

const leases = suite('leases that can fail');

/** Sites with a lease that can fail, by the kind of the lease. */
const FALLIBLE_SITES: { readonly [kind: string]: string } = {
	access_log: 'log {\n\toutput file /nowhere/access.log\n}\nrespond x',
	cache: 'cache\nrespond x',
	concurrency_limiter: 'limit_concurrent few 3\nrespond x',
	password_verifier: `basic_auth {\n\tbob ${HASH}\n}\nrespond x`,
	rate_limiter: 'rate_limit few 3 per 1h\nrespond x',
	tracer: 'tracing\nrespond x',
	upstreams: 'reverse_proxy 127.0.0.1:9000',
};

for (const [kind, lines] of Object.entries(FALLIBLE_SITES)) {
	leases(`${kind}: opening the lease can fail`, () => {
		assert.ok(isFallible(site(lines)));
	});
}

leases('a lease inside blocks, in a later site, or in a named route counts', () => {
	assert.ok(isFallible(site('handle /a/* {\n\troute {\n\t\treverse_proxy 127.0.0.1:9000\n\t}\n}')));
	assert.ok(isFallible(`http://b.test {\n\trespond x\n}\n${site('tracing\nrespond x')}`));
	assert.ok(isFallible(`&(app) {\n\treverse_proxy 127.0.0.1:9000\n}\n${site('invoke app')}`));
	assert.ok(isFallible(`upstream app {\n\tto 127.0.0.1:9000\n}\n${site('reverse_proxy upstream://app')}`));
});

leases('only what a site uses counts', () => {
	assert.not.ok(isFallible(`&(app) {\n\treverse_proxy 127.0.0.1:9000\n}\n${site('respond x')}`));
	assert.not.ok(isFallible(`upstream app {\n\tto 127.0.0.1:9000\n}\n${site('respond x')}`));
	assert.not.ok(isFallible('{\n\tgrace_period 5s\n}\n'));
});

/** Sites whose leases every machine can provide, by the kind of the lease. */
const INFALLIBLE_SITES: { readonly [kind: string]: string } = {
	none: 'header X-A b\nredir /old /new\nrespond x',
	acme_authority: 'acme_server',
	compressor: 'encode gzip\nrespond x',
	event_counter: 'replace a b\nrespond x',
	files: 'root /srv\ntemplates\nfile_server',
	health: 'live /live\nready /ready',
	metrics: 'metrics /metrics',
};

for (const [kind, lines] of Object.entries(INFALLIBLE_SITES)) {
	leases(`${kind}: opening the lease cannot fail`, () => {
		assert.not.ok(isFallible(site(lines)));
	});
}

leases.run();

/**
 * In the I/O mode `direct`, the TLS alert for a rejected client certificate shows the reason for the rejection. The reason that
 * the server reports is the same in both I/O modes.
 */
import { X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import type { SecureVersion } from 'node:tls';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { canonicalJson } from '../../../compiler/document/canonical-json.ts';
import type { Document } from '../../../compiler/document/document.ts';
import type { ClientAuth } from '../../../compiler/document/tls-settings.ts';
import { clientVerifier } from '../../../runtime/sockets/client-verifier.ts';
import { type IoMode, ioMode, setIoMode } from '../../../runtime/sockets/io-mode.ts';
import { TestAuthority } from '../../certificates.ts';
import { freePorts, temporaryFolder } from '../../harness.ts';
import { eventually, withServer } from '../running-server.ts';
import { startTlsListener } from './one-listener.ts';
import { tlsFailure } from './tls-client.ts';

const authority = await TestAuthority.make();
const other = await TestAuthority.make('CN=Other');
const server = await authority.issue({ names: ['a.test'] });
const certificates = {
	none: undefined,
	good: await authority.issue({ subject: 'CN=Good' }),
	stranger: await other.issue({ subject: 'CN=Stranger' }),
	expired: await authority.issue({ subject: 'CN=Expired', from: -7200, until: -3600 }),
	early: await authority.issue({ subject: 'CN=Early', from: 3600 }),
};
type Shown = keyof typeof certificates;

/** Node's error codes for TLS alerts (RFC 8446 §6.2), by the reason of the rejection. */
const ALERTS = {
	missing: {
		'TLSv1.2': 'ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE',
		'TLSv1.3': 'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED',
	},
	unknown: 'ERR_SSL_TLSV1_ALERT_UNKNOWN_CA',
	expired: 'ERR_SSL_SSL/TLS_ALERT_CERTIFICATE_EXPIRED',
	bad: 'ERR_SSL_SSL/TLS_ALERT_BAD_CERTIFICATE',
} as const;
const MISSING = 'client_certificate_missing';
const UNTRUSTED = 'client_certificate_untrusted';
const EXPIRED = 'client_certificate_expired';

type Outcome = readonly [alert: keyof typeof ALERTS, reason: string] | 'let in';
const missing: Outcome = ['missing', MISSING];
const unknown: Outcome = ['unknown', UNTRUSTED];
const expired: Outcome = ['expired', EXPIRED];
const bad: Outcome = ['bad', UNTRUSTED];

const pool = { source: 'inline', certificates: [] } as const;
const leaves = { pem: ['the leaves below'] } as const;
const in_ = 'let in';

/**
 * The settings of a site, and the outcome for each of {@link certificates} in order. All leaf certificates are trusted, except
 * the stranger's.
 */
const OUTCOMES_BY_SETTINGS: readonly [ClientAuth, ...outcomes: Outcome[]][] = [
	[{ mode: 'request' }, in_, in_, in_, in_, in_],
	[{ mode: 'require' }, missing, in_, in_, in_, in_],
	[{ mode: 'require', trusted_leaves: leaves }, missing, in_, bad, expired, bad],
	[{ mode: 'verify_if_given', trust_pool: pool }, in_, in_, unknown, expired, bad],
	[{ mode: 'verify_if_given', trusted_leaves: leaves }, in_, in_, bad, expired, bad],
	[{ mode: 'require_and_verify', trust_pool: pool }, missing, in_, unknown, expired, bad],
	[{ mode: 'require_and_verify', trusted_leaves: leaves }, missing, in_, bad, expired, bad],
	[{ mode: 'require_and_verify', trust_pool: pool, trusted_leaves: leaves }, missing, in_, unknown, expired, bad],
	[{ mode: 'require_and_verify' }, missing, unknown, unknown, unknown, unknown],
];

function trustOf(auth: ClientAuth) {
	const pinned = (['good', 'expired', 'early'] as const).map(name => certificates[name].certificate);
	return {
		key: canonicalJson(auth),
		authorities: auth.trust_pool ? [authority.pem] : [],
		leaves: auth.trusted_leaves && pinned.map(pem => new X509Certificate(pem).fingerprint256),
	};
}

/** Returns the outcome for each certificate: the error that the client gets, and the reason that the server reports. */
async function outcomesOf(
	auth: ClientAuth,
	version: SecureVersion,
	mode: IoMode,
): Promise<[Shown, string, string | undefined][]> {
	const before = ioMode();
	setIoMode(mode);
	const chain = server.certificate;
	const one = await startTlsListener({ policies: [{ client_auth: auth }] }, [
		{ id: 'a', names: ['a.test'], chain, key: server.key },
	]);
	try {
		one.tls.applyUpdate({ kind: 'trust', trust: [trustOf(auth)] });
		const found: [Shown, string, string | undefined][] = [];
		for (const [name, pair] of Object.entries(certificates)) {
			const own = pair ? { cert: pair.certificate, key: pair.key } : {};
			const failure = await tlsFailure(one.port, { servername: 'a.test', maxVersion: version, ...own });
			found.push([name as Shown, failure.startsWith('answered') ? in_ : failure, one.failures.pop()]);
			assert.equal(one.failures, [], 'a certificate was refused more than once');
		}
		return found;
	} finally {
		one.close();
		setIoMode(before);
	}
}

const alerts = suite('alerts for client certificates');

alerts('on this release of Node, OpenSSL verifies client certificates', () => {
	assert.is(clientVerifier() !== undefined, ioMode() === 'direct');
});

for (const [auth, ...outcomes] of OUTCOMES_BY_SETTINGS) {
	for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
		alerts(`${version} ${JSON.stringify(auth)}`, async () => {
			if (ioMode() === 'node') return;
			const expected = Object.keys(certificates).map((name, at) => {
				const outcome = outcomes[at]!;
				if (outcome === in_) return [name, in_, undefined];
				const alert = ALERTS[outcome[0]];
				return [name, typeof alert === 'string' ? alert : alert[version], outcome[1]];
			});
			assert.equal(await outcomesOf(auth, version, 'direct'), expected);
		});
		alerts(`${version} ${JSON.stringify(auth)} by Node alone: the same reasons`, async () => {
			const found = await outcomesOf(auth, version, 'node');
			assert.equal(
				found.map(([name, failure, reason]) => [name, failure === in_, reason]),
				Object.keys(certificates).map((name, at) => {
					const outcome = outcomes[at]!;
					return [name, outcome === in_, outcome === in_ ? undefined : outcome[1]];
				}),
			);
		});
	}
}

alerts('a running server sends the alert and reports the reason in its log and metrics', async () => {
	const [port, httpPort] = (await freePorts(2)) as [number, number];
	const auth: ClientAuth = {
		mode: 'require_and_verify',
		trust_pool: { source: 'inline', certificates: [derOf(authority.pem)] },
	};
	const document: Document = {
		settings: { http_port: httpPort, https_port: port, auto_https: ['off'], metrics: {} },
		sites: [
			{
				addresses: [`https://a.test:${port}`],
				bind: ['127.0.0.1'],
				tls: { certificates: [keepPair()], client_auth: auth },
				pipeline: [{ handler: 'respond', body: 'in' }],
			},
		],
	};
	await withServer(document, { threads: 1, verbose: true }, async ({ runtime, log }) => {
		for (const [shown, alert, reason] of [
			['none', ALERTS.missing['TLSv1.3'], MISSING],
			['stranger', ALERTS.unknown, UNTRUSTED],
			['expired', ALERTS.expired, EXPIRED],
		] as const) {
			const pair = certificates[shown];
			const own = pair ? { cert: pair.certificate, key: pair.key } : {};
			const failure = await tlsFailure(port, { servername: 'a.test', ...own });
			if (ioMode() === 'direct') assert.is(failure, alert);
			await eventually('logged', () => log.text().includes(`"reason":"${reason}"`));
			assert.match(await runtime.metrics(), `svc_tls_handshakes_total{version="",result="${reason}"} 1`);
		}
	});
});

function derOf(pem: string): string {
	return new X509Certificate(pem).raw.toString('base64');
}

function keepPair(): { certificate: string; key: string } {
	const folder = temporaryFolder();
	const files = { certificate: path.join(folder, 'a.pem'), key: path.join(folder, 'a.key') };
	writeFileSync(files.certificate, server.certificate);
	writeFileSync(files.key, server.key, { mode: 0o600 });
	return files;
}

alerts.run();

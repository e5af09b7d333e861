/**
 * If the contents of a file that a document names change, the document is treated as changed: for every kind of file, in both
 * dialects, and in compiler sessions.
 */
import { generateKeyPairSync } from 'node:crypto';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { createCompiler } from '../../../compiler/compiler.ts';
import type { Document } from '../../../compiler/document/document.ts';
import { privateKeyPem } from '../../../runtime/certificates/certificate-keys.ts';
import { certificatePem, issueCertificate } from '../../../runtime/certificates/issue-certificate.ts';
import { diskReader } from '../../../runtime/compile/disk-reader.ts';
import { createDocumentImage, generationDelta, isSameDocument } from '../../../runtime/worker/document-image.ts';
import { TestAuthority, type TestCertificate } from '../../certificates.ts';
import { temporaryFolder } from '../../harness.ts';

const folder = temporaryFolder();
const [one, two] = await Promise.all([TestAuthority.make('CN=One'), TestAuthority.make('CN=Two')]);
const siteCertificates = await Promise.all([one.issue({ names: ['a.test'] }), one.issue({ names: ['a.test'] })]);
const roots = [createRoot(), createRoot()];

/** Creates a root certificate with its key. */
function createRoot(): TestCertificate {
	const { privateKey: key } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
	const day = 86_400_000;
	const notBefore = new Date(Date.now() - day);
	const notAfter = new Date(Date.now() + day);
	const der = issueCertificate({ commonName: 'Root', authority: { pathLength: 1 }, key, notBefore, notAfter });
	return { certificate: certificatePem(der), key: privateKeyPem(key) };
}

function inFolder(name: string): string {
	return path.join(folder, name);
}

function pair(name: string, { certificate, key }: TestCertificate): void {
	writeFileSync(inFolder(`${name}.pem`), certificate);
	writeFileSync(inFolder(`${name}.key`), key);
}

const PAIR = { certificate: inFolder('pair.pem'), key: inFolder('pair.key') };

function site(tls: object): Document {
	return {
		settings: { auto_https: ['off'] },
		sites: [
			{ addresses: ['https://a.test:8443'], tls: { certificates: [PAIR], ...tls }, pipeline: [] },
			{ addresses: ['http://:8080'], pipeline: [{ handler: 'respond', body: 'apart' }] },
		],
	};
}

function proxy(tls: object): Document {
	const step = { handler: 'proxy', upstreams: { to: ['127.0.0.1:1'], transport: { type: 'http', tls } } };
	return {
		sites: [
			{ addresses: ['http://:8080'], pipeline: [{ handler: 'respond' }] },
			{ addresses: [':8081'], pipeline: [step] },
		],
	};
}

/** Every kind of file: a document that names such a file, and a function that writes one of two versions of the file. */
const FILE_KINDS: { readonly [kind: string]: readonly [document: Document, write: (version: 0 | 1) => void] } = {
	'certificate and key': [site({}), version => pair('pair', siteCertificates[version]!)],
	'folder of certificates': [
		site({ load: [inFolder('load')] }),
		version => {
			rmSync(inFolder('load'), { recursive: true, force: true });
			mkdirSync(inFolder('load'));
			const { certificate, key } = siteCertificates[0]!;
			writeFileSync(inFolder('load/a.pem'), certificate + key);
			if (version === 1)
				writeFileSync(inFolder('load/b.pem'), siteCertificates[1]!.certificate + siteCertificates[1]!.key);
		},
	],
	'trust pool of clients': [
		site({
			client_auth: {
				mode: 'require_and_verify',
				trust_pool: { source: 'combined', of: [{ source: 'file', files: [inFolder('ca.pem')] }] },
			},
		}),
		version => writeFileSync(inFolder('ca.pem'), [one, two][version]!.pem),
	],
	'trusted leaf': [
		site({ client_auth: { mode: 'require', trusted_leaves: { files: [inFolder('leaf.pem')] } } }),
		version => writeFileSync(inFolder('leaf.pem'), siteCertificates[version]!.certificate),
	],
	'folder of trusted leaves': [
		site({ client_auth: { mode: 'require', trusted_leaves: { folders: [inFolder('leaves')] } } }),
		version => {
			mkdirSync(inFolder('leaves'), { recursive: true });
			writeFileSync(inFolder('leaves/a.pem'), siteCertificates[0]!.certificate);
			if (version === 1) writeFileSync(inFolder('leaves/b.pem'), siteCertificates[1]!.certificate);
			else rmSync(inFolder('leaves/b.pem'), { force: true });
		},
	],
	'trust of an upstream': [
		proxy({ trust: { source: 'file', files: [inFolder('up-ca.pem')] } }),
		version => writeFileSync(inFolder('up-ca.pem'), [one, two][version]!.pem),
	],
	'certificate for an upstream': [
		proxy({ client_certificate: { certificate: inFolder('up.pem'), key: inFolder('up.key') } }),
		version => pair('up', siteCertificates[version]!),
	],
	'root of an internal authority': [
		{
			...site({ issuers: [{ issuer: 'internal', ca: 'own' }] }),
			settings: { pki: { authorities: { own: { root: { cert: inFolder('root.pem'), key: inFolder('root.key') } } } } },
		},
		version => pair('root', roots[version]!),
	],
	'root of an issuer': [
		site({ issuers: [{ issuer: 'acme', trusted_roots: [inFolder('acme.pem')] }] }),
		version => writeFileSync(inFolder('acme.pem'), [one, two][version]!.pem),
	],
	'root of all issuers': [
		{ ...site({}), settings: { acme_ca_root: inFolder('acme-all.pem') } },
		version => writeFileSync(inFolder('acme-all.pem'), [one, two][version]!.pem),
	],
};

const files = suite('named files');

files.before(() => pair('pair', siteCertificates[0]!));

for (const [kind, [document, write]] of Object.entries(FILE_KINDS)) {
	files(`${kind}: only changed contents make a different configuration`, () => {
		write(0);
		const session = createCompiler(diskReader(folder));
		const image = () => {
			const input = { format: 'json', text: JSON.stringify(document), name: '<test>' } as const;
			const { document: compiled, plan, diagnostics } = session.compile(input);
			assert.ok(compiled && plan, JSON.stringify(diagnostics));
			return createDocumentImage(compiled!, plan);
		};
		const before = image();
		assert.ok(isSameDocument(before, image()), 'the same contents are the same configuration');
		write(1);
		const after = image();
		assert.not.ok(isSameDocument(before, after));
		const kept = generationDelta(before, after).siteRanges.filter(([from]) => from !== -1);
		assert.ok(kept.length > 0, 'unrelated sites are kept');
		write(0);
		assert.ok(isSameDocument(before, image()), 'the original contents are the original configuration');
		pair('pair', siteCertificates[0]!);
	});
}

files('an upstream whose certificates became unusable is rejected, although its site is unchanged', () => {
	const [document, write] = FILE_KINDS['trust of an upstream']!;
	write(0);
	const session = createCompiler(diskReader(folder));
	const input = { format: 'json', text: JSON.stringify(document), name: '<test>' } as const;
	assert.ok(session.compile(input).plan);
	writeFileSync(inFolder('up-ca.pem'), 'nonsense');
	assert.is(session.compile(input).plan, undefined);
	write(1);
	assert.ok(session.compile(input).plan);
});

files('a document that names no files depends on none', () => {
	const text = JSON.stringify({ sites: [{ addresses: [':80'], pipeline: [] }] });
	const { plan } = createCompiler(diskReader(folder)).compile({ format: 'json', text, name: '<test>' });
	assert.is(plan!.files, undefined);
});

files.run();

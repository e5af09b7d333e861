/** Checks the certificate files that settings name: those of internal authorities, and the roots trusted for issuers. */
import { X509Certificate } from 'node:crypto';
import type { Report } from '../../diagnostics/diagnostic.ts';
import type { Document, Step } from '../../document/document.ts';
import type { IssuerSettings } from '../../document/tls-settings.ts';
import type { PkiSettings } from '../../modules/options/pki.ts';
import { HANDLERS } from '../../modules/registry/handlers.ts';
import { escapePointer } from '../../schema/validate.ts';
import { ReadError, type Reader } from '../../source/reader.ts';
import { isFileMistake } from './certificate-check.ts';
import { parsePemCertificates } from './certificate-files.ts';
import type { CertificatePlan } from './certificate-plan.ts';
import type { PlanFiles } from './plan-tls.ts';

/** Matches references to environment variables in issuers' settings. */
const IN_ENVIRONMENT = /\{(?:env\.|\$)([^{}\s]+)\}/g;

const NOT_AN_AUTHORITY = 'Use a CA certificate: its basic constraints must say `CA:TRUE`.';

/** A file with root certificates, and its place in the document. */
interface NamedRoots {
	readonly file: string;
	readonly pointer: string;
}

/**
 * Reports certificate and key files of certificate authorities that cannot be read or do not match each other, and root
 * certificates that are invalid. Files that no site needs are never read at run time, so mistakes in them are only warnings.
 */
export function checkAuthorityFiles(
	document: Document,
	managed: CertificatePlan,
	{ reader, check, facts }: PlanFiles,
	report: Report,
): void {
	const unneeded = { severity: 'warning', hint: 'No site uses it.' } as const;
	let used: ReadonlySet<string> | undefined;
	const isUsed = (id: string): boolean => {
		used ??= new Set([...managed.authorities, ...authoritiesIn(document)]);
		return used.has(id);
	};
	const { authorities = {} } = (document.settings?.pki ?? {}) as PkiSettings;
	for (const [id, authority] of Object.entries(authorities)) {
		for (const level of ['root', 'intermediate'] as const) {
			const files = authority[level];
			if (files?.cert === undefined || files.key === undefined) continue;
			const outcome = check.pair(files.cert, files.key, reader);
			const pointer = `/settings/pki/authorities/${escapePointer(id)}/${level}`;
			if (isFileMistake(outcome)) report({ ...outcome, pointer, ...(isUsed(id) ? { severity: 'error' } : unneeded) });
			else if (!new X509Certificate(reader.readBytes(files.cert)).ca) {
				const message = `\`${files.cert}\` is not a CA certificate.`;
				report({ code: 'tls/not-an-authority', severity: 'error', pointer, message, hint: NOT_AN_AUTHORITY });
			}
		}
	}
	for (const { file: written, pointer } of rootsOf(document)) {
		// Without facts, the environment may differ from the server's, so nothing can be said about the path.
		if (!facts && written.search(IN_ENVIRONMENT) !== -1) continue;
		const file = written.replaceAll(IN_ENVIRONMENT, (_whole, name: string) => facts?.env(name) ?? '');
		const message = mistakeIn(file, reader);
		if (message === undefined) continue;
		const isNeeded = managed.policies.some(({ issuers }) =>
			issuers.some(({ trusted_roots: roots }) => (roots as readonly string[] | undefined)?.includes(written)),
		);
		report({ code: 'tls/bad-root', pointer, message, ...(isNeeded ? { severity: 'error' } : unneeded) });
	}
}

function rootsOf({ settings = {}, sites = [] }: Document): NamedRoots[] {
	const found: NamedRoots[] = [];
	const addFrom = (issuer: { readonly [setting: string]: unknown } | undefined, pointer: string): void => {
		for (const [at, file] of ((issuer?.trusted_roots ?? []) as readonly string[]).entries()) {
			found.push({ file, pointer: `${pointer}/trusted_roots/${at}` });
		}
	};
	const add = (issuers: unknown, pointer: string): void => {
		for (const [at, issuer] of ((issuers ?? []) as readonly IssuerSettings[]).entries()) {
			addFrom(issuer, `${pointer}/${at}`);
		}
	};
	add(settings.cert_issuers, '/settings/cert_issuers');
	if (typeof settings.acme_ca_root === 'string') {
		found.push({ file: settings.acme_ca_root, pointer: '/settings/acme_ca_root' });
	}
	for (const [at, { tls }] of sites.entries()) {
		if (!tls) continue;
		add(tls.issuers, `/sites/${at}/tls/issuers`);
		addFrom(tls.acme, `/sites/${at}/tls/acme`);
	}
	return found;
}

function mistakeIn(file: string, reader: Reader): string | undefined {
	try {
		parsePemCertificates(Buffer.from(reader.readBytes(file)).toString('latin1'));
		return undefined;
	} catch (error) {
		if (!(error instanceof ReadError)) return `\`${file}\` does not contain certificates.`;
		const why = error.code === 'ENOENT' ? 'it does not exist' : `the system says ${error.code}`;
		return `The root file \`${file}\` cannot be read: ${why}.`;
	}
}

/** Returns the internal authorities that a document names outside of issuers, in handlers and trust pools. */
function authoritiesIn(value: unknown): string[] {
	if (typeof value !== 'object' || value === null) return [];
	const { handler, source, authorities } = value as { readonly [field: string]: unknown };
	const used = typeof handler === 'string' ? HANDLERS.get(handler)?.authorityOf?.(value as Step) : undefined;
	const own: string[] = used === undefined ? [] : [used];
	if ((source === 'pki_root' || source === 'pki_intermediate') && Array.isArray(authorities)) {
		own.push(...(authorities as readonly string[]));
	}
	return [...own, ...Object.values(value).flatMap(authoritiesIn)];
}

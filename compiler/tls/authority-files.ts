/** Certificate files that settings name: of internal authorities, and roots that issuers are trusted by. */
import { X509Certificate } from 'node:crypto';
import type { Report } from '../diagnostics/diagnostic.ts';
import type { Document } from '../document/document.ts';
import { escapePointer } from '../document/validate.ts';
import type { PkiSettings } from '../options/pki.ts';
import { ReadError, type Reader } from '../source/reader.ts';
import { isMistake } from './certificate-check.ts';
import { certificatesIn } from './certificate-files.ts';
import type { IssuerSettings } from './certificate-plan.ts';
import type { PlanFiles } from './plan-tls.ts';

/** What issuers take from the environment in their settings. */
const IN_ENVIRONMENT = /\{(?:env\.|\$)([^{}\s]+)\}/g;

const NOT_AN_AUTHORITY = 'Give one that may sign others: its basic constraints say `CA:TRUE`.';

/** A file of roots and where the document names it. */
interface NamedRoots {
	readonly file: string;
	readonly pointer: string;
}

/** Reports files of authorities that cannot be read or do not belong together, and roots that are none. */
export function checkAuthorityFiles(document: Document, { reader, check, facts }: PlanFiles, report: Report): void {
	const { authorities = {} } = (document.settings?.pki ?? {}) as PkiSettings;
	for (const [id, authority] of Object.entries(authorities)) {
		for (const level of ['root', 'intermediate'] as const) {
			const files = authority[level];
			if (files?.cert === undefined || files.key === undefined) continue;
			const outcome = check.pair(files.cert, files.key, reader);
			const pointer = `/settings/pki/authorities/${escapePointer(id)}/${level}`;
			if (isMistake(outcome)) report({ ...outcome, severity: 'error', pointer });
			else if (!new X509Certificate(reader.readBytes(files.cert)).ca) {
				const message = `\`${files.cert}\` is not the certificate of an authority.`;
				report({ code: 'tls/not-an-authority', severity: 'error', pointer, message, hint: NOT_AN_AUTHORITY });
			}
		}
	}
	for (const { file: written, pointer } of rootsOf(document)) {
		// The environment of another machine than the one that serves says nothing.
		if (!facts && IN_ENVIRONMENT.test(written)) continue;
		const file = written.replaceAll(IN_ENVIRONMENT, (_whole, name: string) => facts?.env(name) ?? '');
		const message = mistakeIn(file, reader);
		if (message !== undefined) report({ code: 'tls/bad-root', severity: 'error', pointer, message });
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
		certificatesIn(Buffer.from(reader.readBytes(file)).toString('latin1'));
		return undefined;
	} catch (error) {
		if (!(error instanceof ReadError)) return `\`${file}\` does not hold certificates.`;
		const why = error.code === 'ENOENT' ? 'it does not exist' : `the system says ${error.code}`;
		return `The root file \`${file}\` cannot be read: ${why}.`;
	}
}

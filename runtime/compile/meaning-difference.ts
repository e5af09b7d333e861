/**
 * Determines, for clients of the Admin API, what loading a configuration would change for requests: compares the running document
 * and the new document as `svc diff` does.
 */
import { UNKNOWN_HOST_FACTS } from '../../compiler/codegen/placeholders/index.ts';
import { compile } from '../../compiler/compiler.ts';
import { type ComparedConfiguration, diffConfigurations } from '../../compiler/diff/configuration-diff.ts';
import { diffAsJson } from '../../compiler/diff/render-diff.ts';
import type { Document } from '../../compiler/document/document.ts';
import { redactSecrets } from '../../compiler/schema/secrets.ts';
import { ReadError, type Reader, WITHHELD } from '../../compiler/source/reader.ts';
import type { MeaningDifference } from './load-results.ts';

/** Maximum characters of a document. Larger ones would keep loads waiting for too long. */
const MAX_DOCUMENT_CHARACTERS = 1_000_000;
const MAX_COMPARED_REQUESTS = 2000;
/** Maximum milliseconds of a comparison. */
const MAX_COMPARISON_MS = 2000;

/**
 * Compares two documents without revealing more than the client may know: secrets are replaced by numbers, equal secrets by the
 * same number, and neither files nor the environment are read. Never rejects.
 */
export async function meaningDifference(
	oldDocument: Document,
	newDocument: Document,
	workingDirectory: string,
): Promise<MeaningDifference> {
	const secretNumbers = new Map<string, number>();
	const oldConfiguration = comparedDocument(oldDocument, workingDirectory, secretNumbers);
	const newConfiguration = comparedDocument(newDocument, workingDirectory, secretNumbers);
	if (typeof oldConfiguration === 'string') return { unavailable: `The running document ${oldConfiguration}.` };
	if (typeof newConfiguration === 'string') return { unavailable: `The new document ${newConfiguration}.` };
	const deadline = performance.now() + MAX_COMPARISON_MS;
	const deps = { facts: UNKNOWN_HOST_FACTS, lease: () => undefined };
	const diff = await diffConfigurations(
		oldConfiguration,
		newConfiguration,
		deps,
		MAX_COMPARED_REQUESTS,
		() => performance.now() < deadline,
	);
	const blindSpots = [...diff.blindSpots, 'files and the environment are not read'];
	return diffAsJson({ ...diff, blindSpots }) as MeaningDifference;
}

/** Returns the document without its secrets. If it cannot be compared, returns the reason, as the end of a sentence. */
function comparedDocument(
	document: Document,
	workingDirectory: string,
	secretNumbers: Map<string, number>,
): ComparedConfiguration | string {
	const secretNumberOf = (secret: string): number => {
		const number = secretNumbers.get(secret) ?? secretNumbers.size + 1;
		secretNumbers.set(secret, number);
		return number;
	};
	const redactedDocument = redactSecrets(document, ({ parts, schemaMark: mark }, text) => {
		if (mark === true) return replacementFor(text, secretNumberOf(text));
		let redactedText = '';
		let copiedUntil = 0;
		for (const { start: partStart, end: partEnd } of parts) {
			redactedText += `${text.slice(copiedUntil, partStart)}secret-${secretNumberOf(text.slice(partStart, partEnd))}`;
			copiedUntil = partEnd;
		}
		return redactedText + text.slice(copiedUntil);
	});
	const text = JSON.stringify(redactedDocument);
	if (text.length > MAX_DOCUMENT_CHARACTERS) return 'is too large to be compared while a server runs';
	const { plan } = compile({ format: 'json', text, name: '<document>' }, emptyReader(workingDirectory));
	return plan ? { plan, locate: () => undefined } : 'cannot be compared without its secrets and files';
}

/**
 * Returns the replacement for a secret. If the secret is a password hash, so is the replacement, because the form of hashes is
 * checked.
 */
function replacementFor(secret: string, secretNumber: number): string {
	const decodedSecret = secret.startsWith('$') ? secret : Buffer.from(secret, 'base64').toString('latin1');
	const digits = String(secretNumber);
	if (decodedSecret.startsWith('$2')) return `$2b$10$${'u'.repeat(22)}${digits.padStart(31, 'u')}`;
	if (decodedSecret.startsWith('$argon2id$'))
		return `$argon2id$v=19$m=65536,t=3,p=1$${'A'.repeat(22)}$${digits.padStart(42, 'A')}A`;
	return `{secret.${digits}}`;
}

/** Returns a reader for which no files and no environment variables exist. */
function emptyReader(workingDirectory: string): Reader {
	return {
		workingDirectory,
		readText: path => {
			throw new ReadError(WITHHELD, path);
		},
		readBytes: path => {
			throw new ReadError(WITHHELD, path);
		},
		list: path => {
			throw new ReadError(WITHHELD, path);
		},
		kind: () => 'withheld',
		env: () => undefined,
	};
}

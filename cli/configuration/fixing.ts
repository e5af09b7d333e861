/** Applies the fixes that diagnostics offer, except those that cause errors or make a test of the configuration fail. */
import { readFileSync } from 'node:fs';
import type { Diagnostic, FixSafety } from '../../compiler/diagnostics/diagnostic.ts';
import { applyFixes, type FixedText } from '../../compiler/diagnostics/fixes.ts';
import type { ConfigInput } from '../../compiler/dialects/dialect.ts';
import { quoteWord } from '../command/arguments.ts';
import { CommandFailure } from '../command/command.ts';
import { replaceFile } from './replace-file.ts';
import { type ConfigurationValidation, type ValidationOptions, validateConfiguration } from './validation.ts';

/** Maximum number of times the configuration is checked. A fix may reveal a problem that has a fix itself. */
const MAX_FIX_ROUNDS = 200;

/** A configuration after fixes were applied. */
export interface FixedConfiguration {
	/** The configuration with its text after the fixes. */
	readonly input: ConfigInput;
	readonly validation: ConfigurationValidation;
	/** The changed files. `before` is their text when they were read. */
	readonly changedFiles: readonly FixedText[];
	/** Number of fixes applied. */
	readonly fixCount: number;
}

/**
 * Applies fixes until none is left. A fix that would cause more errors or failing tests is left out. Writes nothing: see {@link
 * writeFixes}.
 */
export async function fixConfiguration(
	input: ConfigInput,
	options: ValidationOptions,
	safety: FixSafety,
): Promise<FixedConfiguration> {
	const originalsByKey = new Map<string, FixedText>();
	const textsByKey = new Map<string, string>();
	const rejectedKeys = new Set<string>();
	const fileKeyOf = ({ path, name }: { path?: string | undefined; name: string }): string => path ?? name;
	const inputKey = fileKeyOf(input);
	const validateWithChanges = async (changedTexts: ReadonlyMap<string, string>): Promise<ConfigurationValidation> => {
		return validateConfiguration(
			{ ...input, text: changedTexts.get(inputKey) ?? input.text },
			{ ...options, textsByPath: changedTexts },
		);
	};
	let validation = await validateConfiguration(input, options);
	let fixCount = 0;
	/**
	 * Applies the fixes of `diagnostics` together and keeps them, unless they cause errors or failing tests; returns false in
	 * that case.
	 */
	const tryFixes = async (diagnostics: readonly Diagnostic[]): Promise<boolean> => {
		const { texts: fixedTexts, applied: appliedFixes } = applyFixes(diagnostics, safety);
		if (appliedFixes.length === 0) return true;
		const changedTexts = new Map(textsByKey);
		for (const fixedText of fixedTexts) changedTexts.set(fileKeyOf(fixedText), fixedText.after);
		const newValidation = await validateWithChanges(changedTexts);
		if (isWorse(validation, newValidation)) return false;
		for (const fixedText of fixedTexts) {
			if (!originalsByKey.has(fileKeyOf(fixedText))) originalsByKey.set(fileKeyOf(fixedText), fixedText);
			textsByKey.set(fileKeyOf(fixedText), fixedText.after);
		}
		validation = newValidation;
		fixCount += appliedFixes.length;
		return true;
	};
	for (let round = 0; round < MAX_FIX_ROUNDS; round++) {
		const fixable = validation.diagnostics.filter(
			diagnostic => isFixable(diagnostic, safety) && !rejectedKeys.has(findingKey(diagnostic)),
		);
		// While the configuration is refused, its warnings are uncertain: what seems unused may be used in a part that could not
		// be read.
		const candidates = validation.canStart ? fixable : fixable.filter(({ severity }) => severity === 'error');
		if (candidates.length === 0) break;
		if (await tryFixes(candidates)) continue;
		// At least one of the fixes is harmful. Applying one fix shifts the offsets of the others, so only the first is tried in this
		// round, and the next round checks the configuration again.
		const [first] = candidates;
		if (!(await tryFixes([first!]))) rejectedKeys.add(findingKey(first!));
	}
	return {
		input: { ...input, text: textsByKey.get(inputKey) ?? input.text },
		validation,
		changedFiles: [...originalsByKey].map(([key, fixedText]) => ({ ...fixedText, after: textsByKey.get(key)! })),
		fixCount,
	};
}

/**
 * Counts the diagnostics that `svc validate --fix` fixes (`safe`), and those that only `--fix=unsafe` fixes (`unsafe`).
 */
export function countFixes(diagnostics: readonly Diagnostic[]): { safe: number; unsafe: number } {
	const safe = diagnostics.filter(diagnostic => isFixable(diagnostic, 'safe')).length;
	return { safe, unsafe: diagnostics.filter(diagnostic => isFixable(diagnostic, 'unsafe')).length - safe };
}

/**
 * Writes the changed files, each by renaming a complete new file over it. @throws {@link CommandFailure} if a file was changed
 * after it was read (no file is written), or cannot be written (only the files before it in the list are written)
 */
export function writeFixes(changedFiles: readonly FixedText[]): void {
	const files = changedFiles.flatMap(({ path, before, after }) =>
		path === undefined ? [] : [{ path, before, after }],
	);
	const byteOrderMarks = files.map(({ path, before }) => {
		const current = readCurrentText(path);
		const mark = current.charCodeAt(0) === BYTE_ORDER_MARK ? current[0]! : '';
		if (current.slice(mark.length) === before) return mark;
		throw new CommandFailure(`${quoteWord(path)} was changed while it was being fixed; nothing was written.`);
	});
	for (const [index, { path, after }] of files.entries()) replaceFile(path, byteOrderMarks[index]! + after);
}

const BYTE_ORDER_MARK = 0xfeff;

function readCurrentText(file: string): string {
	try {
		return readFileSync(file, 'utf8');
	} catch (error) {
		throw new CommandFailure(`${quoteWord(file)} cannot be read: ${(error as NodeJS.ErrnoException).code}.`);
	}
}

function isFixable({ fix }: Diagnostic, safety: FixSafety): boolean {
	return fix !== undefined && (safety === 'unsafe' || fix.safety === 'safe');
}

function isWorse(before: ConfigurationValidation, after: ConfigurationValidation): boolean {
	if (before.canStart && !after.canStart) return true;
	return errorCount(after) > errorCount(before) || after.tests.failed > before.tests.failed;
}

function errorCount({ diagnostics }: ConfigurationValidation): number {
	return diagnostics.filter(({ severity }) => severity === 'error').length;
}

/** Returns a key by which a finding is recognized after the text around it has changed. */
function findingKey({ code, message, fix }: Diagnostic): string {
	return JSON.stringify([code, message, fix?.edits.map(({ text }) => text)]);
}

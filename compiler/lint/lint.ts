/** Runs the lint rules over a configuration that compiles. */
import type { Plan } from '../codegen/plan/plan.ts';
import type { CompileResult } from '../compiler.ts';
import { ConcealedValues } from '../diagnostics/concealed-values.ts';
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import { sortDiagnostics } from '../diagnostics/sort-diagnostics.ts';
import type { ConfigInput } from '../dialects/dialect.ts';
import type { Document } from '../document/document.ts';
import { DryRun, type DryRunEnvironment } from '../dry-run/dry-run.ts';
import { registryOf } from '../lower/registry.ts';
import { ReadError, type Reader } from '../source/reader.ts';
import { Source } from '../source/source.ts';
import type { ConfigTree } from '../syntax/ast.ts';
import { parseConfig } from '../syntax/parse-config.ts';
import { lintRules } from './index.ts';
import { LintContext, type LintSubject } from './inspection/lint-context.ts';
import { walkDocument } from './inspection/walk-document.ts';
import { snippetUnused } from './rules/snippet-unused.ts';
import { SilencingComments } from './silencing-comments.ts';

/** A compiled configuration and everything its rules may inspect. */
export interface LintInput {
	readonly input: ConfigInput;
	readonly compiled: Pick<CompileResult, 'diagnostics' | 'locate' | 'files'> & {
		readonly document: Document;
		readonly plan: Plan;
	};
	readonly reader: Reader;
	readonly deps: DryRunEnvironment;
	/** Returns the dry run that the rules use. Default: a new one. */
	readonly dryRunOf?: (plan: Plan) => DryRun;
	/** `usual`: only the rules that `svc validate` checks without `--lint`. */
	readonly rules?: 'all' | 'usual';
}

/** Returns the findings of the compiler and of the rules, sorted by place, except those silenced by comments. Opens no socket. */
export async function lint({
	input,
	compiled,
	reader,
	deps,
	dryRunOf = plan => new DryRun(plan, deps),
	rules = 'all',
}: LintInput): Promise<Diagnostic[]> {
	const { document, plan, diagnostics, locate } = compiled;
	const found: Diagnostic[] = [...diagnostics];
	const wanted = lintRules.filter(
		rule => rules === 'all' || rule.always || (rule.ofConfigfile && input.format === 'configfile'),
	);
	const { tree, sources } = texts(input, compiled.files, reader, found, wanted.includes(snippetUnused));
	let dryRun: DryRun | undefined;
	const subject: LintSubject = {
		diagnostics,
		input,
		document,
		plan,
		walked: walkDocument(document),
		tree,
		sources,
		reader,
		locate,
		dryRun: request => {
			dryRun ??= dryRunOf(plan);
			return dryRun.run(request);
		},
	};
	for (const rule of wanted) await rule.check?.(new LintContext(subject, rule, found));
	const all = sortDiagnostics(found);
	if (input.format === 'json') return all;
	const silences = new SilencingComments(input.format);
	for (const source of sources) silences.add(source);
	const left = silences.filter(all);
	if (rules === 'all') {
		const names = lintRules.map(({ name }) => name);
		const compiling = new Set(diagnostics.map(({ code }) => code));
		silences.unused([...names, ...compiling], one => left.push(one));
	}
	const concealed = new ConcealedValues();
	conceal(sources, concealed.watching(reader));
	return sortDiagnostics(left).map(one => concealed.conceal(one));
}

/** Returns the contents of all configuration files, and the parsed tree. For JSON, there are neither. */
function texts(
	input: ConfigInput,
	files: readonly string[],
	reader: Reader,
	found: Diagnostic[],
	unused: boolean,
): { tree: ConfigTree | undefined; sources: readonly Source[] } {
	if (input.format === 'json') return { tree: undefined, sources: [] };
	const knownDirectives = new Set(registryOf(input.format).directives.keys());
	const report = (one: Diagnostic): void => {
		if (one.code === 'snippet/unused') found.push(one);
	};
	const tree = parseConfig(input, reader, report, { knownDirectives, ...(unused && { reportUnused: unused }) });
	const sources = [new Source({ name: input.name, text: input.text, path: input.path })];
	for (const path of files) {
		if (path === input.path) continue;
		try {
			sources.push(new Source({ name: path, text: reader.readText(path), path }));
		} catch (error) {
			// A missing file is ignored here, because it existed during compilation and its contents have been compiled.
			if (!(error instanceof ReadError)) throw error;
		}
	}
	return { tree, sources };
}

/** Registers the values of the environment variables that files use, so that messages do not reveal them. */
function conceal(sources: readonly Source[], watching: Reader): void {
	for (const { text } of sources) for (const [, name] of text.matchAll(/\{\$([^{}:\s]+)/g)) watching.env(name!);
}

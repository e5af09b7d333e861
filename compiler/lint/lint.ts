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

/** A compiled configuration, and everything that rules may inspect. */
export interface LintInput {
	readonly input: ConfigInput;
	readonly compiled: Pick<CompileResult, 'diagnostics' | 'locate' | 'files'> & {
		readonly document: Document;
		readonly plan: Plan;
	};
	readonly reader: Reader;
	readonly deps: DryRunEnvironment;
	/** Returns the dry run that the rules use. Default: a new one. */
	readonly dryRunFor?: (plan: Plan) => DryRun;
	/** Which rules run. `usual` selects only the rules that `svc validate` checks without `--lint`. */
	readonly ruleSelection?: 'all' | 'usual';
}

/** Returns the findings of the compiler and of the rules, except those silenced by comments, sorted by place. Opens no socket. */
export async function lint({
	input,
	compiled,
	reader,
	deps,
	dryRunFor = plan => new DryRun(plan, deps),
	ruleSelection = 'all',
}: LintInput): Promise<Diagnostic[]> {
	const { document, plan, diagnostics, locate } = compiled;
	const findings: Diagnostic[] = [...diagnostics];
	const selectedRules = lintRules.filter(
		rule =>
			ruleSelection === 'all' || rule.alwaysChecked || (rule.checkedForConfigfile && input.format === 'configfile'),
	);
	const { tree, sources } = readTexts(input, compiled.files, reader, findings, selectedRules.includes(snippetUnused));
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
			dryRun ??= dryRunFor(plan);
			return dryRun.run(request);
		},
	};
	for (const rule of selectedRules) await rule.check?.(new LintContext(subject, rule, findings));
	const sorted = sortDiagnostics(findings);
	if (input.format === 'json') return sorted;
	const silences = new SilencingComments(input.format);
	for (const source of sources) silences.add(source);
	const unsilenced = silences.filter(sorted);
	if (ruleSelection === 'all') {
		const names = lintRules.map(({ name }) => name);
		const compilerCodes = new Set(diagnostics.map(({ code }) => code));
		silences.reportUnused([...names, ...compilerCodes], finding => unsilenced.push(finding));
	}
	const concealed = new ConcealedValues();
	watchVariables(sources, concealed.watching(reader));
	return sortDiagnostics(unsilenced).map(finding => concealed.conceal(finding));
}

/** Returns the contents of all configuration files, and the parsed tree. For JSON, there are neither. */
function readTexts(
	input: ConfigInput,
	files: readonly string[],
	reader: Reader,
	findings: Diagnostic[],
	reportUnused: boolean,
): { tree: ConfigTree | undefined; sources: readonly Source[] } {
	if (input.format === 'json') return { tree: undefined, sources: [] };
	const knownDirectives = new Set(registryOf(input.format).directives.keys());
	const report = (diagnostic: Diagnostic): void => {
		if (diagnostic.code === 'snippet/unused') findings.push(diagnostic);
	};
	const tree = parseConfig(input, reader, report, { knownDirectives, ...(reportUnused && { reportUnused }) });
	const sources = [new Source({ name: input.name, text: input.text, path: input.path })];
	for (const path of files) {
		if (path === input.path) continue;
		try {
			sources.push(new Source({ name: path, text: reader.readText(path), path }));
		} catch (error) {
			// A missing file is no mistake here: it existed during compilation, and its contents have been compiled.
			if (!(error instanceof ReadError)) throw error;
		}
	}
	return { tree, sources };
}

/** Reads the environment variables that files use, so that their values are known and concealed in messages. */
function watchVariables(sources: readonly Source[], watchingReader: Reader): void {
	for (const { text } of sources) for (const [, name] of text.matchAll(/\{\$([^{}:\s]+)/g)) watchingReader.env(name!);
}

/** The samplers of `OTEL_TRACES_SAMPLER`, which decide which requests are recorded. */
import type { Tracer } from '../../compiler/exchange/leases.ts';

/** Decides whether a trace is recorded. `parentSampled` is undefined for a root span. */
export type Sampler = Tracer['isSampled'];

/**
 * Number of hexadecimal digits, at the end of a trace ID, on which the decision depends. They hold 52 bits, which a double
 * represents exactly.
 */
const DECIDING_DIGITS = 13;

/**
 * Returns the sampler that an environment configures; `parentbased_always_on` by default and for unknown names (see {@link
 * samplerProblem}).
 */
export function createSampler(environment: { readonly [name: string]: string | undefined }): Sampler {
	if (isTracingDisabled(environment)) return (_traceId, parentSampled) => parentSampled ?? false;
	const name = environment.OTEL_TRACES_SAMPLER ?? '';
	const sampleRoot = rootSampler(name.replace(/^parentbased_/, ''), environment.OTEL_TRACES_SAMPLER_ARG);
	if (KNOWN_SAMPLERS.has(name) && !name.startsWith('parentbased_')) return sampleRoot;
	return (traceId, parentSampled) => parentSampled ?? sampleRoot(traceId, undefined);
}

/** Returns a sentence that says what is wrong with an environment's sampler settings; undefined if they are valid. */
export function samplerProblem(environment: { readonly [name: string]: string | undefined }): string | undefined {
	const name = environment.OTEL_TRACES_SAMPLER ?? '';
	if (name !== '' && !KNOWN_SAMPLERS.has(name)) {
		return `OTEL_TRACES_SAMPLER names no sampler that there is: \`${name}\`; parentbased_always_on is used.`;
	}
	const argument = environment.OTEL_TRACES_SAMPLER_ARG;
	if (name.endsWith('traceidratio') && ratioOf(argument) === undefined) {
		return `OTEL_TRACES_SAMPLER_ARG is not a number from 0 to 1: \`${argument}\`; 1 is used.`;
	}
	return undefined;
}

/** Reports whether `OTEL_SDK_DISABLED` turns tracing off. The trace context of callers is still passed on. */
export function isTracingDisabled(environment: { readonly [name: string]: string | undefined }): boolean {
	return environment.OTEL_SDK_DISABLED?.trim().toLowerCase() === 'true';
}

const KNOWN_SAMPLERS: ReadonlySet<string> = new Set([
	...['always_on', 'always_off', 'traceidratio'],
	...['parentbased_always_on', 'parentbased_always_off', 'parentbased_traceidratio'],
]);

function rootSampler(name: string, argument: string | undefined): Sampler {
	if (name === 'always_off') return () => false;
	if (name !== 'traceidratio') return () => true;
	const ratio = ratioOf(argument) ?? 1;
	// In every kind of trace ID, the last digits are random (W3C Trace Context, level 2).
	const threshold = ratio * 16 ** DECIDING_DIGITS;
	return traceId => Number.parseInt(traceId.slice(-DECIDING_DIGITS), 16) < threshold;
}

function ratioOf(argument: string | undefined): number | undefined {
	if (argument === undefined || argument.trim() === '') return 1;
	const ratio = Number(argument);
	return ratio >= 0 && ratio <= 1 ? ratio : undefined;
}

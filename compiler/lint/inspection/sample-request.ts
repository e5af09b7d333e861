/** Builds sample requests that match given patterns of hosts and paths. */
import type { ListenerSpec, Plan } from '../../codegen/plan/plan.ts';
import type { Matcher } from '../../document/document.ts';
import { type DryRunRequest, isRequestUrl, parseRequestUrl } from '../../dry-run/dry-run-request.ts';
import { fakeExchange } from '../../dry-run/fake-exchange.ts';
import type { Request } from '../../exchange/exchange.ts';
import { pathsOf } from '../../modules/registry/matchers.ts';
import { branchesOf } from './answering.ts';
import { assertedMatchers, type WalkedStep } from './walk-document.ts';

/** Returns a host that a pattern matches. For '', returns a host that no site names. */
export function sampleHost(pattern: string): string {
	return pattern === '' ? 'host.invalid' : pattern.replaceAll('*', 'any-label');
}

/** Returns a GET request for a URL; undefined if the URL is invalid. */
export function sampleGet(text: string): DryRunRequest | undefined {
	const url = parseRequestUrl(text);
	if (!isRequestUrl(url)) return undefined;
	return { method: 'GET', url, headers: [], body: undefined, from: undefined, at: undefined };
}

/** Returns a GET request for `/` at a host on a listener. */
export function sampleRequest(listener: ListenerSpec, host: string): Request {
	const hostInUrl = host.includes(':') ? `[${host}]` : host;
	return fakeExchange(sampleGet(`${listener.scheme}://${hostInUrl}:${listener.port}/`)!, listener).request;
}

/** Returns the origins, such as `https://example.com`, at which a site is served. */
export function siteOrigins(plan: Plan, siteIndex: number): string[] {
	const origins: string[] = [];
	for (const { scheme, port, sites, host: boundHost } of plan.listeners) {
		for (const { site: index, hosts } of sites) {
			if (index !== siteIndex) continue;
			const host = hosts[0] === undefined ? sampleHost(boundHost === '' ? '' : boundHost) : sampleHost(hosts[0]);
			const isDefaultPort = port === (scheme === 'http' ? 80 : 443);
			origins.push(`${scheme}://${host.includes(':') ? `[${host}]` : host}${isDefaultPort ? '' : `:${port}`}`);
		}
	}
	return origins;
}

/** Returns paths with which requests reach a step, derived from path matchers in `conditions`; `/` if there are none. */
export function samplePaths(step: WalkedStep, conditions: readonly Matcher[]): string[] {
	const paths = new Set<string>();
	for (const condition of conditions) {
		for (const { matcher } of assertedMatchers(condition, '')) {
			for (const pattern of pathsOf(matcher)?.values ?? []) {
				if (pattern.includes('{') || pattern.includes('%')) continue;
				paths.add(samplePath(pattern.replace(/\*$/, '')));
				if (pattern.endsWith('*')) paths.add(samplePath(pattern));
			}
		}
	}
	if (paths.size === 0) paths.add('/');
	return [...paths].slice(0, step.pipeline.handlesErrors ? 0 : 8);
}

/** Returns the conditions of a step and of the steps and branches that contain it, innermost first. */
export function conditionsOf(walkedStep: WalkedStep): Matcher[] {
	const conditions: Matcher[] = [];
	for (
		let currentStep: WalkedStep | undefined = walkedStep, innerPointer = '';
		currentStep;
		innerPointer = currentStep.pointer, currentStep = currentStep.pipeline.owner
	) {
		if (currentStep.step.when) conditions.push(currentStep.step.when);
		const relativePointer = innerPointer.slice(currentStep.pointer.length);
		const branch = branchesOf(currentStep.step).find(({ pointer }) =>
			relativePointer.startsWith(`${pointer}/pipeline/`),
		);
		if (branch?.when) conditions.push(branch.when);
	}
	return conditions;
}

function samplePath(pattern: string): string {
	const path = pattern
		.replaceAll('*', 'any')
		.replaceAll('?', 'x')
		.replace(/\[([^\]]).*?\]/g, '$1');
	return path.startsWith('/') ? path : `/${path}`;
}

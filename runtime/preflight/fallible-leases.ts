/** Determines whether a configuration leases resources that a machine may be unable to provide, such as log files. */

import { type BuildEnvironment, buildSite } from '../../compiler/codegen/build-site.ts';
import { fakeLeases } from '../../compiler/codegen/context/fake-leases.ts';
import type { Plan } from '../../compiler/codegen/plan/plan.ts';
import type { LeaseKinds, Leases } from '../../compiler/exchange/leases.ts';
import { hostFacts } from '../threads/host-facts.ts';
import type { TargetMachine } from './finding.ts';

/** For each kind of lease, whether opening one can fail or cause a warning although the configuration compiles. */
const CAN_FAIL: { readonly [kind in keyof LeaseKinds]: boolean } = {
	access_log: true,
	account_file: false,
	acme_authority: false,
	cache: true,
	compressor: false,
	concurrency_limiter: true,
	event_counter: false,
	files: false,
	health: false,
	metrics: false,
	mirror_gate: false,
	// The lease itself cannot fail. It is included because only a real verifier checks password hashes that come from environment
	// variables.
	password_verifier: true,
	rate_limiter: true,
	tracer: true,
	upstreams: true,
};

/** Reports whether a site leases anything whose opening can fail or cause a warning. */
export function usesFallibleLeases({ document }: Plan, { workingDirectory, environment }: TargetMachine): boolean {
	let isFallible = false;
	const leases: Leases = {
		lease(kind, settings) {
			isFallible ||= CAN_FAIL[kind];
			return fakeLeases.lease(kind, settings);
		},
	};
	const buildEnvironment: BuildEnvironment = {
		settings: document.settings ?? {},
		upstreams: document.upstreams ?? {},
		routes: document.routes ?? {},
		leases,
		facts: hostFacts(workingDirectory, environment),
	};
	return (document.sites ?? []).some((site, index) => {
		buildSite(site, index, buildEnvironment);
		return isFallible;
	});
}

//! Who may import whom: the table of ARCHITECTURE.md as data, compared with each crate's direct dependencies.
//!
//! Arrows point at the core: nothing that decides may know what time it is, what a socket is, or who is watching.
//! Dev-dependencies are free, and so is what only the model checker's cfg brings in.

use crate::workspace::{Crate, Dependency};

/// One row: what a crate may import.
struct Layer {
    name: &'static str,
    ours: &'static [&'static str],
    outside: Outside,
    /// The rule in words, ending the sentence that tells of a violation.
    rule: &'static str,
}

enum Outside {
    /// These, and only as optional dependencies behind a feature.
    BehindFeatures(&'static [&'static str]),
    /// These.
    Only(&'static [&'static str]),
    /// Anything but these.
    AnyBut(&'static [&'static str]),
}

const LAYERS: &[Layer] = &[
    Layer {
        name: "fuseline-core",
        ours: &[],
        outside: Outside::BehindFeatures(&["humantime", "rustix", "serde"]),
        rule: "the core imports nothing of ours, and what helps it stands behind a feature",
    },
    Layer {
        name: "fuseline-llm",
        ours: &["fuseline-core"],
        outside: Outside::Only(&[
            "aho-corasick",
            "bytes",
            "crc32fast",
            "hmac",
            "http",
            "httpdate",
            "humantime",
            "memchr",
            "serde",
            "serde_json",
            "sha2",
            "toml",
        ]),
        rule: "the LLM layer knows the core and formats, no runtime, socket or logger",
    },
    Layer {
        name: "fuseline",
        ours: &["fuseline-core", "fuseline-llm"],
        outside: Outside::Only(&[
            "bytes",
            "futures-core",
            "http",
            "http-body",
            "pin-project-lite",
            "reqwest",
            "serde_json",
            "tokio",
            "tower-layer",
            "tower-service",
        ]),
        rule: "the library brings core and llm to async Rust, with the caller's own client",
    },
    Layer {
        name: "fuseline-telemetry",
        ours: &["fuseline-core"],
        outside: Outside::Only(&[
            "bytes",
            "http",
            "opentelemetry",
            "opentelemetry-http",
            "opentelemetry-otlp",
            "opentelemetry_sdk",
            "prometheus-client",
            "thiserror",
            "tracing",
        ]),
        rule: "telemetry reads what the core says, and writes metrics, spans and logs; what it sends, others carry",
    },
    Layer {
        name: "fuseline-store",
        ours: &["fuseline-core"],
        outside: Outside::Only(&[
            "redis",
            "rusqlite",
            "rustix",
            "serde",
            "serde_json",
            "thiserror",
            "tracing",
        ]),
        rule: "the store knows the core and databases, and no async runtime",
    },
    Layer {
        name: "fuseline-mock",
        ours: &[],
        outside: Outside::Only(&[
            "bytes",
            "http-body-util",
            "humantime",
            "hyper",
            "hyper-util",
            "serde",
            "serde_json",
            "tokio",
            "toml",
        ]),
        rule: "the scripted provider is no part of the product and imports nothing of ours",
    },
    Layer {
        name: "fuseline-sim",
        ours: &["fuseline-core"],
        outside: Outside::Only(&["fastrand"]),
        rule: "what is simulated is the core, in virtual time and by a seed",
    },
    Layer {
        name: "fuseline-gateway",
        ours: &[
            "fuseline-core",
            "fuseline-llm",
            "fuseline-mock",
            "fuseline-sim",
            "fuseline-store",
            "fuseline-telemetry",
        ],
        outside: Outside::AnyBut(&[
            "opentelemetry",
            "opentelemetry_sdk",
            "prometheus-client",
            "redis",
            "reqwest",
            "rusqlite",
        ]),
        rule: "metrics are telemetry's, databases are the store's, and there is one HTTP client",
    },
    Layer {
        name: "fuseline-node",
        ours: &["fuseline", "fuseline-core", "fuseline-store"],
        outside: Outside::Only(&["bytes", "http", "napi", "napi-build", "napi-derive", "slab"]),
        rule: "the Node package is a thin surface over the library: whoever awaits does so in JavaScript",
    },
    Layer {
        name: "fuseline-python",
        ours: &["fuseline", "fuseline-core", "fuseline-store"],
        outside: Outside::Only(&["bytes", "http", "pyo3"]),
        rule: "the Python package is a thin surface over the library: whoever awaits does so in Python",
    },
    Layer {
        name: "fuseline-bench",
        ours: &[
            "fuseline",
            "fuseline-core",
            "fuseline-gateway",
            "fuseline-llm",
            "fuseline-mock",
            "fuseline-telemetry",
        ],
        outside: Outside::AnyBut(&[]),
        rule: "benchmarks import what they measure, never chores",
    },
    Layer {
        name: "fuseline-examples",
        ours: &["fuseline"],
        outside: Outside::AnyBut(&[]),
        rule: "examples import what a user of the library would",
    },
    Layer {
        name: "xtask",
        ours: &[],
        outside: Outside::AnyBut(&[]),
        rule: "the checks must build when nothing else does",
    },
];

/// Every import that the table does not allow, as a sentence each.
pub(crate) fn violations(crates: &[Crate]) -> Vec<String> {
    let gone = LAYERS
        .iter()
        .filter(|layer| crates.iter().all(|member| member.name != layer.name))
        .map(|layer| {
            format!(
                "{} has a row in the table of layers, but is no crate of the workspace",
                layer.name
            )
        });
    crates
        .iter()
        .flat_map(|member| of_crate(member, crates))
        .chain(gone)
        .collect()
}

fn of_crate(member: &Crate, crates: &[Crate]) -> Vec<String> {
    let Some(layer) = LAYERS.iter().find(|layer| layer.name == member.name) else {
        return vec![format!(
            "{} has no row in the table of layers: say there what it may import",
            member.name
        )];
    };
    let imports = member.dependencies.iter().filter(|import| is_bound(import));
    let refused = imports.filter(|import| {
        if crates.iter().any(|other| other.name == import.name) {
            !layer.ours.contains(&import.name.as_str())
        } else {
            !layer.outside.allows(import)
        }
    });
    refused
        .map(|import| {
            format!(
                "{} must not import {}: {}",
                member.name, import.name, layer.rule
            )
        })
        .collect()
}

fn is_bound(import: &Dependency) -> bool {
    import.kind.as_deref() != Some("dev") && import.target.as_deref() != Some("cfg(fuseline_loom)")
}

impl Outside {
    fn allows(&self, import: &Dependency) -> bool {
        let name = import.name.as_str();
        match self {
            Self::BehindFeatures(names) => import.optional && names.contains(&name),
            Self::Only(names) => names.contains(&name),
            Self::AnyBut(names) => !names.contains(&name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LAYERS, violations};
    use crate::workspace::{Crate, Dependency};

    fn import(name: &str) -> Dependency {
        Dependency {
            name: name.to_owned(),
            kind: None,
            optional: false,
            target: None,
        }
    }

    /// A whole workspace without imports but these.
    fn workspace(importer: &str, imports: Vec<Dependency>) -> Vec<Crate> {
        let mut crates: Vec<_> = LAYERS
            .iter()
            .map(|layer| Crate {
                name: layer.name.to_owned(),
                dependencies: Vec::new(),
            })
            .collect();
        let member = crates.iter_mut().find(|member| member.name == importer);
        member.expect("a crate of the table").dependencies = imports;
        crates
    }

    fn told(importer: &str, imports: Vec<Dependency>) -> Vec<String> {
        violations(&workspace(importer, imports))
    }

    #[test]
    fn what_the_table_allows_passes() {
        let optional = Dependency {
            optional: true,
            ..import("serde")
        };
        assert_eq!(told("fuseline-core", vec![optional]), [""; 0]);
        assert_eq!(
            told(
                "fuseline-llm",
                vec![import("fuseline-core"), import("http")]
            ),
            [""; 0]
        );
        assert_eq!(
            told(
                "fuseline-gateway",
                vec![import("fuseline-llm"), import("axum")]
            ),
            [""; 0]
        );
        assert_eq!(told("xtask", vec![import("anyhow")]), [""; 0]);
    }

    #[test]
    fn an_upward_or_sideways_import_is_told_with_its_rule() {
        assert_eq!(
            told(
                "fuseline-mock",
                vec![import("fuseline-core"), import("tokio")]
            ),
            [
                "fuseline-mock must not import fuseline-core: the scripted provider is no part of the product and \
                 imports nothing of ours"
            ]
        );
        assert_eq!(
            told("fuseline-llm", vec![import("fuseline-telemetry")]).len(),
            1
        );
    }

    #[test]
    fn an_outside_import_is_told() {
        assert_eq!(
            told("fuseline-llm", vec![import("tokio")]),
            [
                "fuseline-llm must not import tokio: the LLM layer knows the core and formats, no runtime, socket or \
                 logger"
            ]
        );
        assert_eq!(told("fuseline-gateway", vec![import("redis")]).len(), 1);
    }

    #[test]
    fn the_core_takes_even_allowed_ones_behind_features_only() {
        assert_eq!(told("fuseline-core", vec![import("serde")]).len(), 1);
    }

    #[test]
    fn build_dependencies_are_bound_and_tests_are_free() {
        let of_kind = |kind: &str| Dependency {
            kind: Some(kind.to_owned()),
            ..import("tokio")
        };
        assert_eq!(told("fuseline-llm", vec![of_kind("build")]).len(), 1);
        assert_eq!(told("fuseline-llm", vec![of_kind("dev")]), [""; 0]);
        let model_checker = Dependency {
            target: Some("cfg(fuseline_loom)".to_owned()),
            ..import("loom")
        };
        assert_eq!(told("fuseline-core", vec![model_checker]), [""; 0]);
    }

    #[test]
    fn a_crate_without_a_row_and_a_row_without_a_crate_are_told() {
        let mut crates = workspace("xtask", Vec::new());
        crates.retain(|member| member.name != "fuseline-bench");
        crates.push(Crate {
            name: "fuseline-new".to_owned(),
            dependencies: Vec::new(),
        });
        let told = violations(&crates);
        assert_eq!(told.len(), 2);
        assert!(told[0].starts_with("fuseline-new has no row"));
        assert!(told[1].starts_with("fuseline-bench has a row"));
    }
}

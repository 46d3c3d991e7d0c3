//! Routing: strategies, rules for failures, budgets, places, and how others failed at it.

mod bodies;
mod budget;
mod hedge;
mod places;
mod reports;
mod rules;
mod strategies;

use fuseline_gateway::Gateway;
use fuseline_mock::{Mock, Reply, Script};

use crate::config::{good, notes};
use crate::support::{Answer, chat, gateway, openai, send};

/// A failure that is worth another attempt at once.
pub(crate) fn again(status: u16) -> Reply {
    Reply::status(status).header("retry-after-ms", "1")
}

/// Providers `a`, `b` and so on behind a gateway. The text is the route's, without its head, and what follows it.
pub(crate) struct Scene {
    pub(crate) mocks: Vec<Mock>,
    pub(crate) gateway: Gateway,
}

impl Scene {
    pub(crate) async fn of<S: Into<Script>>(
        scripts: impl IntoIterator<Item = S>,
        text: &str,
    ) -> Self {
        Self::under("", scripts, text).await
    }

    /// With keys that stand at the top.
    pub(crate) async fn under<S: Into<Script>>(
        top: &str,
        scripts: impl IntoIterator<Item = S>,
        text: &str,
    ) -> Self {
        let mut mocks = Vec::new();
        let mut providers = top.to_owned();
        for (name, script) in ["a", "b", "c", "d", "e"].into_iter().zip(scripts) {
            let mock = Mock::start(script).await.unwrap();
            providers += &openai(name, &mock.url());
            mocks.push(mock);
        }
        let gateway = gateway(&format!("{providers}[[routes]]\nmodel = \"*\"\n{text}")).await;
        Self { mocks, gateway }
    }

    pub(crate) async fn call(&self) -> Answer {
        send(self.gateway.addr(), chat()).await
    }

    pub(crate) fn hits(&self) -> Vec<u64> {
        self.mocks.iter().map(Mock::hits).collect()
    }
}

/// `targets = [...]` for these providers, each as it is or with more keys.
pub(crate) fn targets(targets: &[&str]) -> String {
    let one = |target: &&str| match target.split_once(' ') {
        Some((name, more)) => format!("{{ provider = \"{name}\", {more} }}"),
        None => format!("{{ provider = \"{target}\" }}"),
    };
    let list: Vec<_> = targets.iter().map(one).collect();
    format!("targets = [{}]\n", list.join(", "))
}

/// Who answered.
pub(crate) fn by(answer: &Answer) -> &str {
    answer.header("x-fuseline-target")
}

#[test]
fn the_guides_files_are_good() {
    let guide = include_str!("../../../../docs/guide/routing.md");
    let parts = guide.split("\n```").skip(1).step_by(2);
    let blocks: Vec<_> = parts
        .map(|part| part.strip_prefix("toml\n").unwrap())
        .collect();
    let [providers, routes @ ..] = &blocks[..] else {
        panic!("providers come first")
    };
    assert_eq!(routes.len(), 3);
    for route in routes {
        let text = format!("state = \"off\"\n{providers}\n{route}");
        assert_eq!(good(&text).routes.len(), 1);
        let told = notes(&text);
        assert!(
            told.iter().all(|note| note.contains("no route names")),
            "{told:?}"
        );
    }
}

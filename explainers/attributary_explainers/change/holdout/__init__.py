"""What a change explainer keeps of its stream: frozen models, and observations with what two models said to them."""
